"""Whose a run, a call or an approval is: loaded with it, for lists."""

from tools.models import ApprovalQuerySet

KINDS = ("goals_goal", "agents_useragent", "agents_agenttask")
"""Of a thread, whose it is."""
OWNERS = tuple(f"thread__{kind}" for kind in KINDS)


def with_actions(approvals: ApprovalQuerySet) -> ApprovalQuerySet:
    """With the calls that they are about, whose those are, and without what may be long."""
    owners = (f"action__{owner}" for owner in OWNERS)
    return approvals.select_related("action", *owners).defer("action__undo", "action__output")
