"""A tool call unfolded: what it was asked, what it gave, whether it can be taken back."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from agents.live.cards import awaits_approval, cut, pairs, plain
from agents.live.steps import sentence
from tools import registry
from tools.base import Reversal
from tools.models import ActionStatus, AgentAction
from tools.restoring import CannotRestore
from tools.undo import CannotUndo, Standing, can_be_undone, findings, is_possible, record_of
from tools.way_back import way_back


@dataclass(frozen=True, slots=True)
class Details:
    """Plain text throughout. `arguments` are (name, value) pairs, long or nested values as JSON; `changes` are (name,
    before, after) of what an update has changed. result: what became of it, in a word or two. at: when it ended, or
    was asked for. undo: whether it can be taken back, in words."""

    sentence: str
    at: datetime
    result: str
    arguments: list[tuple[str, str]]
    changes: list[tuple[str, str, str]]
    output: str
    error: str
    lasted: timedelta | None
    undo: str


def details(action: AgentAction) -> Details:
    return Details(
        sentence=f"{sentence(action)[0]} {action.summary}".strip(),
        at=action.finished_at or action.created_at,
        result=_result(action),
        arguments=pairs(action),
        changes=list(_changes(action)),
        output=cut(action.output),
        error=cut(action.error),
        lasted=action.finished_at - action.started_at if action.finished_at and action.started_at else None,
        undo=_undo(action),
    )


def _result(action: AgentAction) -> str:
    if awaits_approval(action):
        return _("Waits for your approval")
    return {
        ActionStatus.INTENT: _("To come"),
        ActionStatus.PROPOSED: _("Not carried out"),
        ActionStatus.STARTED: _("Under way"),
        ActionStatus.DONE: _("Done"),
        ActionStatus.ERROR: _("It failed, and nothing took effect"),
        ActionStatus.DENIED: _("Not allowed, so nothing was done"),
        ActionStatus.CANCELLED: _("Left undone"),
        ActionStatus.UNKNOWN: _("Not known whether it happened"),
    }[ActionStatus(action.status)]


def _changes(action: AgentAction) -> Iterator[tuple[str, str, str]]:
    for change in record_of(action).changes:
        if change.before is not None and change.after is not None:
            for name, before in change.before.items():
                yield name.replace("_", " "), plain(before), plain(change.after[name])


def _undo(action: AgentAction) -> str:
    if action.undone:
        return _("Undone")
    if can_be_undone(action):
        return _outlook(action)
    if action.reversal == Reversal.UNDOABLE:
        return _("Nothing to undo")
    return way_back(action.reversal, registry.find(action.tool, action.user_id))


def _outlook(action: AgentAction) -> str:
    """Whether an undo would do anything as things stand now, and if not, why."""
    try:
        parts = findings(action, Standing(action.user_id))
    except CannotRestore as busy:
        return str(busy)
    return _("Can be undone") if is_possible(parts) else str(CannotUndo.because(parts))
