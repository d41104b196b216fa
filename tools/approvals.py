"""When a call needs a person's word, and what such a word is about."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from tools.base import Risk
from tools.models import ActionStatus, AgentAction, Approval, ApprovalState, Cause
from tools.registry import AnyTool

VERDICTS = {
    ApprovalState.REJECTED: "The user rejected this call, it was not executed.",
    ApprovalState.EXPIRED: "Nobody approved this call in time, it was not executed.",
    ApprovalState.CANCELLED: "This call was withdrawn, it was not executed.",
}
PROPOSED = (
    "Not executed yet: this call waits for the user's approval, which is asked for beside the conversation. Do not "
    "repeat it; you will be told what was decided."
)


def cause(tool: AnyTool, *, repeats_unknown: bool) -> Cause | None:
    """Why a call of this tool needs approval; None when it does not.

    Args:
        repeats_unknown: whether an identical call of the same run has an unknown outcome.
    """
    if tool.risk is Risk.RESTRICTED:
        return Cause.RESTRICTED
    return Cause.REPEATS_UNKNOWN if repeats_unknown else None


def withdraw(thread_ids: Sequence[UUID], reason: str) -> None:
    """Close what waits for approval in conversations that are put away. A live run's own calls end with it."""
    with transaction.atomic():
        waiting = AgentAction.objects.filter(
            thread__in=thread_ids, status=ActionStatus.PROPOSED, approval__state=ApprovalState.REQUESTED
        )
        ids = list(waiting.order_by("created_at").select_for_update(of=("self",)).values_list("pk", flat=True))
        open_ones = Approval.objects.filter(pk__in=ids, state=ApprovalState.REQUESTED)
        open_ones.update(state=ApprovalState.CANCELLED, decided_at=Now(), reason=reason)
        AgentAction.objects.filter(pk__in=ids, approval__state=ApprovalState.CANCELLED).update(
            status=ActionStatus.CANCELLED, error=reason, finished_at=Now()
        )
