"""The schema of `ThreadMessage.metadata`."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class MessageMetadata(BaseModel):
    """
    action: the audit row that a tool cell shows.
    task, task_title: the sub-agent whose report this is.
    thinking: reasoning that the model showed; always interim. seconds: how long it took.
    interim: text that the model said beside its tool calls; shown as a quiet step, not as the answer.
    retryable: whether an error message offers to try again.
    decision: the action that this message decides about; written by a decision of the user, never typed.
    reason: why a run was ended, when it did not end by itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: UUID | None = None
    task: UUID | None = None
    task_title: str = ""
    decision: UUID | None = None
    thinking: bool = False
    seconds: float | None = None
    interim: bool = False
    retryable: bool | None = None
    reason: Literal["", "stopped", "limit", "error"] = ""
