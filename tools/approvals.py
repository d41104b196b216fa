"""When a call needs a person's word, and what such a word is about."""

from tools.base import Risk
from tools.models import ApprovalState, Cause
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


def verdict(state: ApprovalState, reason: str) -> str:
    """Why a call that was not approved was not executed, for its agent.

    Args:
        reason: the person's own words when they rejected it, else ours; may be empty.
    """
    if not reason:
        return VERDICTS[state]
    return f"{VERDICTS[state]} {'Their reason: ' if state is ApprovalState.REJECTED else ''}{reason}"
