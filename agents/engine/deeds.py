"""What a stopped run had done and what it had not, in words for its user."""

from collections.abc import Sequence
from uuid import UUID

from agents.live.steps import intention
from memory.pool import orm
from tools.models import ActionStatus, AgentAction
from tools.undo import told

LEFT = {ActionStatus.CANCELLED: "Not done", ActionStatus.UNKNOWN: "Not known whether it happened"}


def account(run_id: UUID) -> str:
    """From what is on record, whichever worker has done it."""
    with orm():
        actions = list(AgentAction.objects.filter(run=run_id).order_by("step", "position"))
    done = [_small(told(action)) for action in actions if action.status == ActionStatus.DONE]
    text = f"Done before that: {'; '.join(done)}." if done else "Nothing had been done yet."
    for status, words in LEFT.items():
        if left := _intentions(actions, status):
            text += f" {words}: {'; '.join(left)}."
    return text


def _intentions(actions: Sequence[AgentAction], status: ActionStatus) -> list[str]:
    return [_small(intention(action)) for action in actions if action.status == status]


def _small(phrase: str) -> str:
    return f"{phrase[:1].lower()}{phrase[1:]}".strip()
