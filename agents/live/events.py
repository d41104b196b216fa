"""What can be seen as it happens: one vocabulary for the websocket, the event stream and the terminal.

Events carry ids and plain data, never HTML. Everything except `think` is published after its commit and can be read
again from the database; `think` is a piece of text on its way and is not stored.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter


class Event(BaseModel):
    """Its type is written first (`keys.kind_of`). `run` is None for a message that no run has written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    run: UUID | None


class Think(Event):
    """A piece of the model's text. Pieces of one step, joined, are its text so far."""

    type: Literal["think"] = "think"
    run: UUID
    text: str


class ToolStart(Event):
    """A tool call was committed as started. `message` is its cell in the thread, `action` its audit row."""

    type: Literal["tool_start"] = "tool_start"
    run: UUID
    message: UUID
    action: UUID
    tool: str
    arguments: dict[str, JsonValue]


class ToolProgress(Event):
    """How far a call is that is under way. It is not stored. `total` is None when nobody knows; `words` are the
    tool's own, and may be a stranger's."""

    type: Literal["tool_progress"] = "tool_progress"
    run: UUID
    message: UUID
    action: UUID
    tool: str
    done: float
    total: float | None
    words: str


class ToolComplete(Event):
    """The outcome of a tool call was committed, or it was undone or done again. `status` is the action's."""

    type: Literal["tool_complete"] = "tool_complete"
    run: UUID
    message: UUID
    action: UUID
    tool: str
    status: str
    summary: str
    undone: bool = False


class ApprovalChanged(Event):
    """A call waits for a person's word, or got one: `state`. A decision must name `digest`."""

    type: Literal["approval"] = "approval"
    run: UUID
    message: UUID
    action: UUID
    tool: str
    state: str
    digest: str


class MessagePosted(Event):
    """A message of the thread was committed. Text on its way is replaced by one of the agent, but not by the report of
    a task (`task` in the metadata): its agent may be talking."""

    type: Literal["message"] = "message"
    run: UUID | None
    message: UUID
    source: str
    message_type: str
    content: str
    metadata: dict[str, JsonValue]
    created_at: datetime


PASSING: Final = ("queued", "cancelling")
"""States that others than its worker tell of a run, who may be late: it may be writing already, or still."""


class RunChanged(Event):
    """A run changed its state. Its text on its way is to be dropped when this arrives, unless the state is PASSING.

    pause: the model's provider failed and is asked again after so many seconds, while the run goes on (tier 1 of the
    retries).
    """

    type: Literal["run"] = "run"
    run: UUID
    status: str
    iterations: int
    cost: str | None
    pause: float | None = None


class Failed(Event):
    """A run ended in an error that is shown in the thread as `message`."""

    type: Literal["error"] = "error"
    run: UUID
    message: UUID
    text: str
    retryable: bool


type AnyEvent = Annotated[
    Think | ToolStart | ToolProgress | ToolComplete | ApprovalChanged | MessagePosted | RunChanged | Failed,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


def ends_text(event: Mapping[str, Any]) -> bool:
    """Say of an event's fields whether the text of its `run` on its way is over once it is out. A report may come while
    its parent talks."""
    if event["run"] is None:
        return False
    match event["type"]:
        case "message":
            return bool(event["source"] != "user" and "task" not in event["metadata"])
        case "run":
            return event["status"] not in PASSING
        case kind:
            return kind in ("tool_start", "error")
