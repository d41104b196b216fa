"""A tool call, a thought or a report as one line of the trail: its mark, its sentence, its time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _
from pydantic import ValidationError

from agents.live import how_far, markdown
from agents.live.cards import Card, awaits_approval, card, is_asked_about, target
from agents.live.turns import Part
from memory.messages import ToolUse
from memory.text import clip, without_marks
from tools import registry
from tools.base import HowFar, Wording
from tools.models import OPEN, ActionStatus, AgentAction

SUBJECT_LENGTH: Final = 160
FIRST_LENGTH: Final = 280
WORTH_SAYING: Final = timedelta(milliseconds=50)

_STATES: Final = {
    ActionStatus.INTENT: "queued",
    ActionStatus.PROPOSED: "queued",
    ActionStatus.STARTED: "running",
    ActionStatus.DONE: "done",
    ActionStatus.ERROR: "failed",
    ActionStatus.DENIED: "failed",
    ActionStatus.CANCELLED: "quiet",
    ActionStatus.UNKNOWN: "quiet",
}


@dataclass(frozen=True, slots=True)
class Step:
    """
    state: a step state of the style sheet.
    verb, subject: the sentence; the verb is emphasised.
    since: when it began, while it is running. lasted: how long it took, once it is over.
    action: whose details can be fetched. html: what unfolds. first: how that begins, to be read before. asks: whether
        its user is asked something; card: what.
    undo: where to post to take it back, or to do it again once it is undone.
    progress: how far it is, while it is running and says so.
    """

    id: UUID
    kind: Literal["tool", "thought", "report"]
    state: str
    icon: str
    verb: str
    subject: str = ""
    since: datetime | None = None
    lasted: timedelta | None = None
    action: UUID | None = None
    html: str = ""
    first: str = ""
    asks: bool = False
    card: Card | None = None
    undo: str = ""
    progress: HowFar | None = None

    @property
    def is_finished(self) -> bool:
        return not self.asks and self.state in ("done", "quiet", "failed", "undone")


def step(part: Part) -> Step:
    if part.action is not None:
        return _tool_step(part.message.pk, part.action, card(part.action))
    message, metadata = part.message, part.metadata
    if part.is_report:
        verb = _("A helper reported")
        html = markdown.render(message.content)
        first = clip(" ".join(without_marks(message.content).split()), FIRST_LENGTH)
        return Step(message.pk, "report", "done", "list-todo", verb, metadata.task_title, html=html, first=first)
    if part.is_check_in:
        html = markdown.render(message.content)
        if metadata.feed:
            return Step(message.pk, "report", "done", "clock", _("Gathered what the feed could tell"), html=html)
        return Step(message.pk, "report", "done", "clock", _("Looked in:"), metadata.schedule_title, html=html)
    if part.tells_of_wait:
        verb = _("Waited for its budget") if metadata.budget else _("Waited for the model's server")
        return Step(message.pk, "thought", "quiet", "", verb, html=message.content)
    if metadata.thinking:
        seconds = metadata.seconds
        verb = _("Thought for %(n)d s") % {"n": max(1, round(seconds))} if seconds else _("Thought")
        return Step(message.pk, "thought", "quiet", "", verb, html=markdown.render(message.content))
    if message.message_type == "tool":
        return Step(message.pk, "tool", "quiet", "circle-help", _("Used a tool"))
    return Step(message.pk, "thought", "quiet", "", clip(message.content, 90), html=markdown.render(message.content))


def shown_step(action: AgentAction) -> Step:
    """A call by itself, outside of its conversation, without its card. Rows of `ActionQuerySet.with_standing`, with
    approvals."""
    return _tool_step(action.pk, action)


def _tool_step(message_id: UUID, action: AgentAction, shown_card: Card | None = None) -> Step:
    status = ActionStatus(action.status)
    verb, icon = sentence(action)
    is_open = status in OPEN
    asks = is_asked_about(action)
    return Step(
        id=message_id,
        kind="tool",
        state="waiting" if asks else "undone" if action.undone else _STATES[status],
        icon=icon,
        verb=verb,
        subject=_subject(action, shown_card.about if shown_card else None),
        since=action.started_at if is_open else None,
        lasted=None if is_open else _lasted(action),
        action=action.pk,
        asks=asks,
        card=shown_card,
        undo=_undo(action),
        progress=how_far.of(action.pk) if status == ActionStatus.STARTED else None,
    )


def _undo(action: AgentAction) -> str:
    """Rows of `ActionQuerySet.with_standing`."""
    known = vars(action)
    again = known.get("taken_back") if action.undone and known.get("repeatable") else None
    wanted = action.pk if known.get("reversible") else again
    return reverse("action_undo", args=[wanted]) if wanted else ""


def sentence(action: AgentAction) -> tuple[str, str]:
    """Return (verb phrase, icon) for how the call stands now, also for a tool that is gone."""
    words = words_of(action.tool)
    if awaits_approval(action):
        return _("Needs your approval:"), words.icon
    if action.status in (*OPEN, ActionStatus.PROPOSED):
        return words.doing, words.icon
    return outcome(words, action.status), words.icon


def outcome(words: Wording, status: str) -> str:
    """The verb phrase of a call that is over; of one left undone, or with an unknown outcome, what it was is to
    follow."""
    if status == ActionStatus.DONE:
        return words.done
    if status == ActionStatus.CANCELLED:
        return _("Left undone:")
    if status == ActionStatus.UNKNOWN:
        return _("Not known whether it happened:")
    return words.failed


def told(call: ToolUse, is_error: bool) -> str:
    """Say what a call of the history did, whose action may be gone: "Created a note Shoes"."""
    words = words_of(call.name)
    return f"{words.failed if is_error else words.done} {_subject_of(call.name, call.arguments)}".strip()


def intention(action: AgentAction, about: str = "") -> str:
    """Say what the call is to do: "Create a note “Shoes”". about: the name of its target, when it gives an id alone."""
    words = words_of(action.tool)
    name = _asked(action) or about
    return f"{words.deed} {name if name.startswith('“') else f'“{name}”'}" if name else words.deed


def words_of(name: str) -> Wording:
    """How to speak of calls of a tool, also of one that is gone."""
    if known := registry.words_of(name):
        return known
    shown = {"name": clip(name, 60)}
    return Wording(
        "plug",
        _("Use %(name)s") % shown,
        _("Using %(name)s") % shown,
        _("Used %(name)s") % shown,
        _("%(name)s failed") % shown,
    )


def _subject(action: AgentAction, about: str | None) -> str:
    """about: the name of its target; None when nobody has looked it up."""
    if awaits_approval(action):
        said = action.summary or intention(action, target(action) if about is None else about)
    else:
        said = action.summary or (intention(action) if action.status == ActionStatus.UNKNOWN else _asked(action))
    if action.status in (ActionStatus.ERROR, ActionStatus.DENIED) and action.error:
        return clip(f"{said}: {action.error}".lstrip(": "), SUBJECT_LENGTH)
    return clip(said, SUBJECT_LENGTH)


def _asked(action: AgentAction) -> str:
    return _subject_of(action.tool, action.arguments)


def _subject_of(name: str, arguments: object) -> str:
    tool = registry.find(name)
    if tool is None:
        return ""
    try:
        return tool.subject(tool.Arguments.model_validate(arguments))
    except ValidationError:
        return ""


def _lasted(action: AgentAction) -> timedelta | None:
    """How long a call took, unless it was too short to be worth a word."""
    if action.finished_at is None or action.started_at is None:
        return None
    lasted = action.finished_at - action.started_at
    return lasted if lasted >= WORTH_SAYING else None
