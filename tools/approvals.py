"""What an agent is told of calls that wait for a person's word, and that person of what they are about."""

from collections.abc import Callable, Mapping

from memory.text import clip
from tools.changes import UndoRecord
from tools.models import Approval, ApprovalState

VERDICTS = {
    ApprovalState.REJECTED: "The user rejected this call, it was not executed.",
    ApprovalState.EXPIRED: "Nobody approved this call in time, it was not executed.",
    ApprovalState.CANCELLED: "This call was withdrawn, it was not executed.",
}
PROPOSED = (
    "Not executed yet: this call waits for the user's approval, which is asked for beside the conversation. Do not "
    "repeat it; you will be told what was decided."
)


def verdict(state: ApprovalState, reason: str) -> str:
    """Why a call that was not approved was not executed, for its agent.

    Args:
        reason: the person's own words when they rejected it, else ours; may be empty.
    """
    if not reason:
        return VERDICTS[state]
    return f"{VERDICTS[state]} {'Their reason: ' if state is ApprovalState.REJECTED else ''}{reason}"


def target(arguments: Mapping[str, object], would: Callable[[], UndoRecord | None]) -> str:
    """The name, as things stand, of what a call gives an id of alone; empty when it says so itself.

    Args:
        would: what it would change if it ran now.
    """
    found = would() if "id" in arguments else None
    return clip(", ".join(change.name for change in found.changes), Approval.TARGET_LENGTH) if found else ""
