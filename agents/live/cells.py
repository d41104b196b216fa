"""Turns as HTML. Page and socket draw with the same functions, so what was pushed equals what a reload shows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final, Literal

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from agents.live import markdown
from agents.live.snapshot import Partial
from agents.live.steps import Step, step
from agents.live.turns import Answerer, Part, Turn
from memory.degrade import HISTORY_REFUSED
from memory.models import AgentRun, RunStatus, Source

UNFOLDED: Final = 6
KEPT_OPEN: Final = 2
LIVE_SLOT: Final = "<!--live-->"
"""Where the text on its way goes in a drawn turn. No text of people or models can contain it: theirs is escaped."""

_CLOSING = re.compile(r"</\w+>")
CARET: Final = '<span class="caret"></span>'


@dataclass(slots=True)
class Piece:
    """A stretch of a turn: steps that follow each other, or one answer, error, wait or closing line."""

    kind: Literal["trail", "say", "error", "wait", "budget", "ended"]
    part: Part | None = None
    folded: list[Step] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    html: str = ""
    foot: dict[str, object] | None = None
    leads_on: bool = False
    text: str = ""
    retry: bool = False
    restart: bool = False


def turn_html(turn: Turn) -> str:
    """Draw a turn, with LIVE_SLOT in the place of the text on its way."""
    context = {
        "turn": turn,
        "day": day_name(turn.day) if turn.day else "",
        "pieces": _pieces(turn),
        "live_slot": mark_safe(LIVE_SLOT) if turn.live else "",  # noqa: S308 (a constant)
    }
    return render_to_string("agents/cells/turn.html", context)


def with_live(html: str, run: AgentRun | None, text: str) -> SafeString:
    """Put the text on its way where it belongs in a drawn turn."""
    live = say_live(Partial(run.pk, text)) if run else ""
    return mark_safe(html.replace(LIVE_SLOT, live, 1))  # noqa: S308 (both were drawn by templates)


def say_live(partial: Partial) -> SafeString:
    """Draw the answer that is being written. Finished blocks stand before #tail-…, the last one is inside."""
    blocks, tail = markdown.render_stream(partial.text) if partial.text else ([], "")
    return format_html(
        '<div class="say" id="say-{run}" aria-busy="true"{hidden}><div class="prose" dir="auto">{blocks}'
        '<div id="tail-{run}">{tail}</div></div></div>',
        run=partial.run,
        hidden="" if partial.text else SafeString(" hidden"),
        blocks=mark_safe("".join(blocks)),  # noqa: S308 (markdown's output is clean)
        tail=tail_html(tail) if partial.text else "",
    )


def tail_html(tail: str) -> SafeString:
    """Put the caret behind the last character, inside whatever elements are still open there."""
    at = _end_of_text(tail)
    return mark_safe(tail[:at] + CARET + tail[at:])  # noqa: S308 (markdown's output is clean)


def _end_of_text(html: str) -> int:
    """Where closing tags and white space at the end begin. Walked from the end: a search by a pattern tries every run
    of blanks in the text, and twenty thousand of them hold the whole process up for seconds."""
    at = len(html.rstrip())
    while (start := html.rfind("<", 0, at)) >= 0 and _CLOSING.fullmatch(html, start, at):
        at = len(html[:start].rstrip())
    return at


def day_name(day: date) -> str:
    """Say a day: Today, 27 November; Friday, 20 November; 3 March 2025."""
    today = timezone.localdate()
    if day == today:
        return _("Today, %(day)s") % {"day": date_format(day, "j F")}
    if day == today - timedelta(days=1):
        return _("Yesterday, %(day)s") % {"day": date_format(day, "j F")}
    return date_format(day, "l, j F" if 0 < (today - day).days < 180 else "j F Y")


def _pieces(turn: Turn) -> list[Piece]:
    pieces: list[Piece] = []
    for part in turn.parts:
        if part.is_step:
            _add_step(pieces, step(part))
        else:
            pieces.append(_piece(part))
    _finish(turn, pieces)
    return pieces


def _add_step(pieces: list[Piece], line: Step) -> None:
    if not pieces or pieces[-1].kind != "trail":
        pieces.append(Piece("trail"))
    pieces[-1].steps.append(line)


def _piece(part: Part) -> Piece:
    if part.metadata.budget:
        return Piece("budget", part)
    if part.message.source == Source.ERROR:
        return Piece("wait" if part.waits else "error", part)
    if part.metadata.reason:
        return Piece("ended", part, text=part.message.content)
    return Piece("say", part, html=markdown.render(part.message.content))


def _finish(turn: Turn, pieces: list[Piece]) -> None:
    """What depends on the whole turn: folds, the foot of the last answer of a run, and how the turn ended."""
    steps: dict[object, int] = {}
    for part in turn.parts:
        steps[part.message.run_id] = steps.get(part.message.run_id, 0) + part.is_step
    _add_silent_ends(turn, pieces)
    for piece in pieces:
        if piece.kind == "trail":
            piece.folded, piece.steps = _fold(piece.steps)
            piece.leads_on = piece is not pieces[-1]
    for run in turn.runs.values():
        answers = [each for each in pieces if each.kind == "say" and each.part and each.part.message.run_id == run.pk]
        if answers and not run.is_live:
            answers[-1].foot = _foot(run, steps.get(run.pk, 0), turn.models.get(run.pk))
    if pieces and pieces[-1].kind == "error" and turn.live is None and not turn.sessions and pieces[-1].part:
        pieces[-1].retry = bool(pieces[-1].part.metadata.retryable)
        pieces[-1].restart = pieces[-1].retry and turn.ask is not None and _was_refused(pieces[-1].part.message.run)


def _was_refused(run: AgentRun | None) -> bool:
    return run is not None and run.reason == HISTORY_REFUSED


def _add_silent_ends(turn: Turn, pieces: list[Piece]) -> None:
    """A run that was stopped before it had begun left no message; the turn says so all the same."""
    said = {each.part.message.run_id for each in pieces if each.kind == "ended" and each.part}
    for run in turn.runs.values():
        if run.status == RunStatus.CANCELLED and run.pk not in said:
            pieces.append(Piece("ended", text=_("Stopped by you before it began.")))


def _fold(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """More than six finished steps fold into one line, except for the last two, reports, and what is not finished."""
    finished = [line for line in steps if line.is_finished and not line.first]
    if len(finished) <= UNFOLDED:
        return [], list(steps)
    folded = finished[:-KEPT_OPEN]
    return folded, [line for line in steps if line not in folded]


def _foot(run: AgentRun, steps: int, by: Answerer | None) -> dict[str, object]:
    lasted = run.finished_at - run.started_at if run.finished_at and run.started_at else None
    model = by.model if by else ""
    return {"steps": steps, "lasted": lasted, "cost": run.cost, "cost_known": run.cost_known, "model": model}
