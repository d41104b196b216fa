"""The schema of `ThreadMessage.metadata`."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Attached(BaseModel):
    """A file that came with a message. size: in bytes. width, height: of a picture, in pixels; else None."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: UUID
    name: str
    media_type: str
    size: int
    width: int | None = None
    height: int | None = None


class MessageMetadata(BaseModel):
    """
    attachments: what the user attached, in order.
    action: the audit row that a tool cell shows.
    task, task_title: the sub-agent whose report this is.
    schedule, schedule_title: by which the clock has brought this, and when that comes, in words.
    feed: which this is the material of, or of which its user wants to talk about this.
    asks: of a question of the agent: answers to pick from, of which there may be none. answers: of one that was picked,
        the message that asks.
    thinking: reasoning that the model showed; always interim. seconds: how long it took.
    interim: text that the model said beside its tool calls; shown as a quiet step, not as the answer.
    retryable: whether an error message offers to try again.
    restarts: the run whose conversation goes on from its summary with this message: it repeats what its user had said.
    decision: the action that this message decides about; written by a decision of the user, never typed.
    reason: why a run was ended, when it did not end by itself.
    budget: what the message says is about this budget, which its user may raise there; with the reason "budget" its run
        waits for that.
    more: whether one press allows more of that budget; dollars: how many, so that the run goes on.
    unpriced: kind of provider and model that have no price, which the run's budget needs.
    addresses: those in instructions of a task or a schedule that whoever wrote them was given, or wrote, themselves
        (`tools.seen`).
    attempt, of: an error after which the run waits for the model, or for room in the database, and goes on by itself:
        which try it waits for, and how many there are; None for as many as it takes. next_at: when it goes on.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: UUID | None = None
    task: UUID | None = None
    task_title: str = ""
    restarts: UUID | None = None
    schedule: UUID | None = None
    schedule_title: str = ""
    feed: UUID | None = None
    decision: UUID | None = None
    asks: tuple[str, ...] | None = None
    answers: UUID | None = None
    thinking: bool = False
    seconds: float | None = None
    interim: bool = False
    retryable: bool | None = None
    reason: Literal["", "stopped", "limit", "error", "budget"] = ""
    budget: UUID | None = None
    more: bool = False
    dollars: int = 1
    unpriced: tuple[str, str] | None = None
    attempt: int | None = None
    of: int | None = None
    next_at: datetime | None = None
    attachments: tuple[Attached, ...] = ()
    addresses: tuple[str, ...] = ()

    def stored(self) -> dict[str, object]:
        """What stands in the column: only what says something."""
        return self.model_dump(mode="json", exclude_defaults=True)


PLAIN = MessageMetadata()
"""Nothing to say beside the words."""
