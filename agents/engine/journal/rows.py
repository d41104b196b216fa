"""What goes into the journal and what comes out of it, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from agents.engine.loop_guard import LoopGuard
from agents.providers.base import Usage

NOTHING: Mapping[str, object] = MappingProxyType({})


class LeaseLost(Exception):
    """Another worker owns the run, or it is over: whoever holds this exception must stop without writing."""


@dataclass(slots=True)
class Progress:
    """How far a claimed run has come; its worker moves it on. First as the claim found it.

    step: counts the replies of the model that are over, with their calls.
    call_id: the model call that is started or follows.
    cancelling: whether the run was to be stopped when it was claimed.
    recoveries: how often a worker has died on it. retries: how often it has waited for the model in this step.
    resumed: whether it was claimed before, so that something of it may be open.
    open_step: whether the reply of its step is recorded already and its calls are to be answered first.
    decided: whether a message that it took is a decision about a call.
    metered: whether budgets count what the run spends.
    sources: the mark of its thread (`memory.marks`).
    guard: what it has called; recorded with each step that is over.
    next_seq: the history's next free place; known once the history is loaded.
    iterations: how many steps have had their reply; at a run's end that is its `step`.
    """

    step: int
    call_id: UUID
    cancelling: bool = False
    recoveries: int = 0
    retries: int = 0
    resumed: bool = False
    open_step: bool = False
    decided: bool = False
    metered: bool = False
    sources: list[str] = field(default_factory=list)
    guard: LoopGuard = field(default_factory=LoopGuard)
    next_seq: int = 1
    iterations: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a run: every write depends on the token, and `fence` counts the claims."""

    run_id: UUID
    token: UUID
    thread_id: UUID
    user_id: int
    fence: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Cell:
    """A message of the thread that a durable point adds."""

    id: UUID
    source: str
    message_type: str
    content: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settled:
    """What a model call came to: who answered, what it used, what it cost (None is unknown).

    charge, charge_tokens: what budgets count for it.
    """

    status: str
    usage: Usage
    cost: Decimal | None
    latency_ms: int
    error: str = ""
    charge: Decimal = Decimal(0)
    charge_tokens: int = 0


@dataclass(frozen=True, slots=True)
class NextCall:
    """The model call that follows at once, so that its start shares the commit; and what is sent with it, as
    `ModelCall` has it."""

    provider: str
    model: str
    system: bytes | None = None
    tools: bytes | None = None
    from_seq: int | None = None
    clipped_seq: int | None = None


class Pulse(NamedTuple):
    """What every fenced statement brings back: whether to stop, whether messages wait, and whether budgets count the
    run by now."""

    cancelling: bool
    pending: bool
    metered: bool


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """D4: a call that is recorded with its reply, but waits for a person's word.

    expires: in seconds from now. sources: the mark of its run. target: as `tools.approvals.target`.
    """

    id: UUID
    cause: str
    digest: str
    expires: float
    sources: Sequence[str]
    target: str


@dataclass(frozen=True, slots=True)
class ActionStart:
    """A call that is recorded together with the reply that asked for it: as started (D5 before the effect), or as
    intent when it waits for approval."""

    id: UUID
    position: int
    call_id: str
    tool: str
    effect: str
    risk: str
    reversal: str
    arguments: dict[str, Any]
    status: str


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    id: UUID
    status: str
    output: str
    summary: str
    error: str
    undo: dict[str, Any] | None


class WaitAnswer(NamedTuple):
    """Why a run that wanted to wait for approvals does or does not: `waits`, or what came meanwhile. `gives_way`: it is
    to end. `in_line` as in `Final`."""

    waits: bool
    cancelling: bool
    pending: bool
    gives_way: bool
    in_line: UUID | None


class AcceptedRow(NamedTuple):
    """`fresh`: the run is new. `woken`: it waited for an approval and goes on because of this message."""

    run_id: UUID
    fresh: bool
    woken: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Final:
    """What a run ended as. `next_run` waits for the messages that came too late for this one; `in_line` is the user's
    oldest other run that waits, for which there may be a slot now; `withdrawn` are the proposed calls that a stop
    has ended."""

    next_run: UUID | None
    cost: Decimal | None
    in_line: UUID | None
    withdrawn: Sequence[UUID]
