"""What an agent is told of calls that wait for a person's word."""

from tools.models import ApprovalState

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
