"""Runs and notes in words and marks."""

from datetime import date, datetime, timedelta

from django import template
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agents.live.cards import plain
from goals import outlook_words
from goals.owners import conversation_of, owner_of
from memory.models import AgentRun, RunStatus
from memory.text import clip, visible, without_marks
from tools.models import AgentAction

register = template.Library()

EXCERPT = 160

_MARKS = {
    RunStatus.QUEUED: "queued",
    RunStatus.RUNNING: "running",
    RunStatus.CANCELLING: "running",
    RunStatus.RETRY_WAIT: "paused",
    RunStatus.WAITING_APPROVAL: "waiting",
    RunStatus.WAITING_BUDGET: "paused",
    RunStatus.SUCCEEDED: "done",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "undone",
}


@register.filter
def mark(run: AgentRun) -> str:
    """The state of the step that stands for a run."""
    return _MARKS[RunStatus(run.status)]


@register.filter
def status_words(run: AgentRun, full: bool = False) -> str:
    """full: as many of the user's runs are at work as may be at once."""
    words = {
        RunStatus.QUEUED: _("waits for your other runs") if full else _("waits for a worker"),
        RunStatus.RUNNING: _("is at work"),
        RunStatus.CANCELLING: _("is stopping"),
        RunStatus.RETRY_WAIT: _("waits to try again"),
        RunStatus.WAITING_APPROVAL: _("waits for you"),
        RunStatus.WAITING_BUDGET: _("waits for its budget"),
        RunStatus.SUCCEEDED: _("finished"),
        RunStatus.FAILED: _("failed"),
        RunStatus.CANCELLED: _("was stopped"),
    }
    return words[RunStatus(run.status)]


@register.filter
def trigger_words(run: AgentRun) -> str:
    words = {
        "message": _("your message"),
        "task": _("a task it was sent on"),
        "report": _("a report of its task"),
        "retry": _("another try"),
        "decision": _("your decision"),
        "schedule": _("the clock"),
    }
    return words.get(run.trigger, run.trigger)


@register.filter
def whose(run: AgentRun | AgentAction) -> str:
    """The name of the agent that ran or acted; the view has loaded our kinds with it."""
    agent = owner_of(run.thread)
    return agent.name() if agent else _("A deleted agent")


@register.filter
def place(run: AgentRun | AgentAction) -> str:
    """The address of the conversation that a run or a call belongs to."""
    return conversation_of(run.thread)


@register.filter
def is_helpers(run: AgentRun) -> bool:
    """Whether a helper ran: it has no conversation of its own to look at."""
    return getattr(run.thread, "agents_agenttask", None) is not None


@register.filter
def took(run: AgentRun, waited: timedelta | None = None) -> timedelta | None:
    """How long a run was at work, without what it waited."""
    if not run.finished_at or not run.started_at:
        return None
    return max(timedelta(), run.finished_at - run.started_at - (waited or timedelta()))


@register.filter
def moment(at: datetime) -> str:
    """An instant in an address, to the microsecond."""
    return at.isoformat()


@register.filter
def lower_first(words: str) -> str:
    """A sentence's beginning, within a sentence."""
    return f"{words[:1].lower()}{words[1:]}"


@register.filter
def excerpt(body: str) -> str:
    """The first words of a note, without the marks that only its page turns into form."""
    return clip(without_marks(body[: 4 * EXCERPT]), EXCERPT)


@register.filter
def document_name(name: str, form: str = "l, j F Y") -> str:
    """What a document is called: a note of a day by its day."""
    return date_format(date.fromisoformat(name), form) if name[:1].isdigit() else name


@register.filter
def figure(value: float) -> str:
    """What was calculated of measured values."""
    return outlook_words.figure(value)


@register.filter
def measured(value: float) -> str:
    """A value that somebody has written down."""
    return outlook_words.written(value)


@register.filter
def signed(value: float) -> str:
    """A pace: with its sign, also a plus."""
    return outlook_words.pace(value)


@register.filter
def unseen(text: str) -> str:
    """The text with what nobody sees of it named (threat T17); empty when all of it is seen."""
    return "" if visible(text) == text else plain(text)
