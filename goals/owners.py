"""Whose a run, a call or an approval is: loaded with it, for lists."""

from tools.models import ApprovalQuerySet

OWNERS = ("thread__goals_goal", "thread__agents_useragent", "thread__agents_agenttask")


def with_actions(approvals: ApprovalQuerySet) -> ApprovalQuerySet:
    """With the calls that they are about, whose those are, and without what may be long."""
    owners = (f"action__{owner}" for owner in OWNERS)
    return approvals.select_related("action", *owners).defer("action__undo", "action__output")
