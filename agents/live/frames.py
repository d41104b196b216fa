"""What goes to a page: partials that put each piece in its place, wrapped for htmx's ws extension."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

import orjson
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.live import markdown
from agents.live.cells import say_live, tail_html, with_live
from agents.live.screen import Screen, suggestions
from agents.live.snapshot import Partial

MORPH: Final = "outerMorph"


def partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html}</hx-partial>'


def upsert(turn_id: UUID, html: str, *, is_there: bool = False) -> str:
    """Put a turn in its place, or at the end when the page does not have it yet."""
    name = f"#turn-{turn_id}"
    morph = partial(name, MORPH, html)
    return morph if is_there else morph + append(turn_id, html)


def append(turn_id: UUID, html: str) -> str:
    """Put a turn at the end unless the page has it."""
    return partial("#empty", "delete", "") + partial(f"#turns:not(:has(#turn-{turn_id}))", "beforeend", html)


def partials(screen: Screen) -> str:
    """Return everything a screen holds, for a page in whatever state."""
    return "".join(piece.put() for piece in pieces(screen, screen.text))


def turns_html(screen: Screen) -> SafeString:
    """Return what is inside #turns: the way to older turns, then the turns."""
    context: dict[str, Any] = {"thread": screen.thread, "older": screen.older, "turns": screen.turns_html}
    return render_to_string("agents/parts/turns.html", context | {"suggestions": suggestions(screen.thread)})


@dataclass(frozen=True, slots=True)
class Piece:
    """Something on a page that has a place of its own. `turn` is the id of a turn; other pieces are always there."""

    target: str
    html: str
    turn: UUID | None = None

    def put(self, *, is_there: bool = False) -> str:
        return upsert(self.turn, self.html, is_there=is_there) if self.turn else partial(self.target, MORPH, self.html)


def pieces(screen: Screen, text: str) -> list[Piece]:
    """Return what is on a screen, with `text` as the text on its way."""
    turns = [Piece(f"#turn-{drawn.id}", with_live(drawn.html, screen.live, text), drawn.id) for drawn in screen.drawn]
    return [*turns, Piece("#bar", screen.bar), Piece("#queue", screen.queue), Piece("#panel-body", screen.panel)]


def frame(seq: str, content: str, say: str = "") -> str:
    """One message of the socket. The page remembers `seq` as where it stands and drops what is not newer."""
    message: dict[str, Any] = {"content": content, "swap": "none"}
    if seq:
        message["seq"] = seq
    if say:
        message["say"] = say
    return orjson.dumps(message).decode()


def wire(*, up: bool) -> str:
    """Tell a page whether events come, or whether it has to ask for what it may miss."""
    return orjson.dumps({"type": "wire", "up": up}).decode()


@dataclass(slots=True)
class Sent:
    """What one page has, as far as this socket told it. Pieces that look the same are not sent again."""

    _looks: dict[str, bytes] = field(default_factory=dict)
    _turns: set[UUID] = field(default_factory=set)
    _writing: UUID | None = None
    _blocks: int = 0

    def news(self, screen: Screen, text: str) -> str:
        """Return the partials that differ from what was sent, with `text` as the text on its way."""
        self._writing = None
        changed = [piece for piece in pieces(screen, text) if self._differs(piece)]
        news = "".join(piece.put(is_there=piece.turn in self._turns) for piece in changed)
        self._turns.update(drawn.id for drawn in screen.drawn)
        return news

    def everything(self, screen: Screen) -> str:
        """Return partials that bring any page to what a reload would show."""
        self._looks.clear()
        self._writing = None
        self._turns = {drawn.id for drawn in screen.drawn}
        shown = [piece for piece in pieces(screen, screen.text) if self._differs(piece)]
        parts = "".join(piece.put() for piece in shown if piece.turn is None)
        return partial("#turns", "innerMorph", turns_html(screen)) + parts

    def writing(self, now: Partial) -> str:
        """Return partials that bring the live answer up to date: finished blocks once, the last one each time."""
        known = self._blocks if self._writing == now.run else None
        blocks, tail = markdown.render_stream(now.text)
        self._writing, self._blocks = now.run, len(blocks)
        for turn in self._turns:
            self._looks.pop(f"#turn-{turn}", None)  # one of them is about to look different
        if known is None:
            return partial(f"#say-{now.run}", MORPH, say_live(now))
        target = f"#tail-{now.run}"
        finished = "".join(blocks[known:])
        ahead = partial(target, "beforebegin", finished) if finished else ""
        return ahead + partial(target, "innerMorph", tail_html(tail))

    def _differs(self, piece: Piece) -> bool:
        look = blake2b(piece.html.encode(), digest_size=16).digest()
        differs = self._looks.get(piece.target) != look
        self._looks[piece.target] = look
        return differs
