"""What goes to a page: partials that put each piece in its place, wrapped for htmx's ws extension."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

import orjson
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.live import markdown
from agents.live.cells import say_live, tail_html, with_live
from agents.live.screen import SUGGESTIONS, Screen
from agents.live.snapshot import Partial

PARTS: Final = ("bar", "queue", "panel")


def partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html}</hx-partial>'


def upsert(turn_id: UUID, html: str, *, is_there: bool = False) -> str:
    """Put a turn in its place, or at the end when the page does not have it yet."""
    name = f"#turn-{turn_id}"
    morph = partial(name, "outerMorph", html)
    return morph if is_there else morph + partial(f"#turns:not(:has({name}))", "beforeend", html)


def partials(screen: Screen) -> str:
    """Return everything a screen holds, for a page in whatever state."""
    return "".join(html for _, html in pieces(screen, screen.text))


def turns_html(screen: Screen) -> SafeString:
    """Return what is inside #turns: the way to older turns, then the turns."""
    context = {"thread": screen.thread, "older": screen.older, "turns": screen.turns_html, "suggestions": SUGGESTIONS}
    return render_to_string("agents/parts/turns.html", context)


def pieces(screen: Screen, text: str, there: Collection[UUID] = ()) -> Iterator[tuple[str, str]]:
    """Yield (name, partial) of each piece, the turns with `text` as what is on its way.

    Args:
        there: turns that the page has for certain.
    """
    if screen.drawn:
        yield "empty", partial("#empty", "delete", "")
    for drawn in screen.drawn:
        html = with_live(drawn.html, screen.live, text)
        yield f"turn {drawn.id}", upsert(drawn.id, html, is_there=drawn.id in there)
    yield "bar", partial("#bar", "outerMorph", screen.bar)
    yield "queue", partial("#queue", "outerMorph", screen.queue)
    if screen.panel:
        yield "panel", partial("#panel-body", "outerMorph", screen.panel)


def frame(seq: str, content: str, say: str = "") -> str:
    """One message of the socket. The page remembers `seq` as where it stands and drops what is not newer."""
    message: dict[str, Any] = {"content": content, "swap": "none"}
    if seq:
        message["seq"] = seq
    if say:
        message["say"] = say
    return orjson.dumps(message).decode()


@dataclass(slots=True)
class Sent:
    """What one page has, as far as this socket told it. Pieces that look the same are not sent again."""

    _looks: dict[str, bytes] = field(default_factory=dict)
    _there: set[UUID] = field(default_factory=set)
    _writing: UUID | None = None
    _blocks: int = 0

    def news(self, screen: Screen, text: str) -> str:
        """Return the partials that differ from what was sent. The slot for text on its way counts as it is now."""
        self._writing = None
        news = [html for name, html in pieces(screen, text, self._there) if self._differs(name, html)]
        self._there.update(drawn.id for drawn in screen.drawn)
        return "".join(news)

    def everything(self, screen: Screen) -> str:
        """Return partials that bring any page to what a reload would show."""
        self._looks.clear()
        self._writing = None
        self._there = {drawn.id for drawn in screen.drawn}
        all_pieces = pieces(screen, screen.text, self._there)
        rest = [html for name, html in all_pieces if self._differs(name, html) and name in PARTS]
        return partial("#turns", "innerMorph", turns_html(screen)) + "".join(rest)

    def writing(self, now: Partial) -> str:
        """Return partials that bring the live answer up to date: finished blocks once, the last one each time."""
        known = self._blocks if self._writing == now.run else None
        blocks, tail = markdown.render_stream(now.text)
        self._writing, self._blocks = now.run, len(blocks)
        if known is None:
            return partial(f"#say-{now.run}", "outerMorph", say_live(now))
        target = f"#tail-{now.run}"
        finished = "".join(blocks[known:])
        ahead = partial(target, "beforebegin", finished) if finished else ""
        return ahead + partial(target, "innerMorph", tail_html(tail))

    def _differs(self, name: str, html: str) -> bool:
        look = blake2b(html.encode(), digest_size=16).digest()
        differs = self._looks.get(name) != look
        self._looks[name] = look
        return differs
