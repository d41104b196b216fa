"""What the audit rows know of calls whose result is missing in the history."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from memory.messages import ToolResult
from memory.pool import orm
from memory.repair import INTERRUPTED
from tools.models import ActionStatus, AgentAction

NOT_EXECUTED = "Not executed: the run ended before."
DENIED = "Not executed: it was not allowed."


def recorded(thread_id: UUID, call_ids: Sequence[str]) -> Mapping[str, ToolResult]:
    """Results made from the recorded status of calls (case HIS-01), by call id; those without a row are left out."""
    if not call_ids:
        return {}
    with orm():
        actions = AgentAction.objects.filter(thread=thread_id, call_id__in=call_ids).order_by("created_at")
        return {action.call_id: _result(action) for action in actions}


def _result(action: AgentAction) -> ToolResult:
    words, failed = _account(action)
    return ToolResult(id=action.call_id, content=words, is_error=failed)


def _account(action: AgentAction) -> tuple[str, bool]:
    """What the model is told, and whether that is an error."""
    match action.status:
        case ActionStatus.DONE:
            return action.output or action.summary, False
        case ActionStatus.ERROR:
            return action.error, True
        case ActionStatus.DENIED:
            return action.error or DENIED, True
        case ActionStatus.CANCELLED | ActionStatus.INTENT:
            return NOT_EXECUTED, True
        case _:
            started = f" It was started at {action.started_at:%H:%M:%S} UTC." if action.started_at else ""
            return INTERRUPTED + started, True
