"""What a tool is. Plain Python: a tool is a view for the model, it parses arguments and calls a service."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import ClassVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.json_schema import GenerateJsonSchema

from tools.cancel import CancelToken
from tools.changes import UndoRecord
from tools.offers import Audience as Audience, Needs as Needs, Pack as Pack, Topic as Topic


class Effect(StrEnum):
    """What running the tool again would mean; decides recovery after a crash (docs/reliability)."""

    PURE = "pure"
    LOCAL = "local"
    IDEMPOTENT = "idempotent"
    VERIFIABLE = "verifiable"
    NON_IDEMPOTENT = "non_idempotent"


# A call of these that broke off may have taken effect, and must not be repeated to find out.
UNCERTAIN = frozenset({Effect.VERIFIABLE, Effect.NON_IDEMPOTENT})


class Risk(StrEnum):
    ALLOWED = "allowed"
    RESTRICTED = "restricted"
    FORBIDDEN = "forbidden"


class Reversal(StrEnum):
    """Whether the effect can be taken back. `NOTHING`: the tool only reads. `COMPENSABLE`: no, or not always, but
    something else may set it right (`Tool.way_back`)."""

    NOTHING = "nothing"
    UNDOABLE = "undoable"
    COMPENSABLE = "compensable"
    IRREVERSIBLE = "irreversible"


class ToolError(Exception):
    """The model is told and the loop goes on. The message is written for the model.

    sources: as `Outcome.sources`, when a stranger's words are in it.
    """

    def __init__(self, message: str, sources: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.sources = sources


class BrokeOff(Exception):
    """A call was begun, and nobody knows what became of it.

    how: in words that end a sentence. said: what a stranger has said of it, whom `sources` name as in `Outcome`.
    """

    def __init__(self, how: str, said: str = "", sources: Sequence[str] = ()) -> None:
        super().__init__(how)
        self.said = said
        self.sources = sources


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown names are an error that the model sees."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class HowFar:
    """How far a call is that takes long. total: None when nobody knows. words: as its tool says it; may be empty."""

    done: float
    total: float | None = None
    words: str = ""


def nothing_offered(name: str) -> bool:
    return False


def to_nobody(progress: HowFar) -> None:
    """Nobody looks on."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Who calls, on whose behalf. Filled by the server; nothing in it ever comes from the model."""

    user_id: int
    thread_id: UUID
    run_id: UUID
    action_id: UUID
    cancel: CancelToken
    sources: Sequence[str] = ()
    """Where text of strangers came from that the run may have read (mission D10). What a tool stores keeps them."""
    offers: Callable[[str], bool] = nothing_offered
    """Whether the calling agent may use the tool of a name as things stand now."""
    tell: Callable[[HowFar], None] = to_nobody
    """Say how far the call is, from the tool's own thread and a few times a second at most. Never raises."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a successful call gives back.

    observation: what the model reads.
    summary: the object of the sentence in the chat's cell ("Created a note" + summary); may be empty.
    undo: what the call changed, by which it is taken back; None when there is nothing to undo.
    touched: other calls that stand otherwise now: what was taken back, if that is what this one did.
    sources: where text of strangers in the observation comes from (an address, the name of a server or file). It marks
        the run, and all that the run leaves behind (mission D10).
    said: text that the call delivered to the user as the agent's message (send_message); ends a conversational run.
    asks: answers to pick from, where that is a question; None: it is none.
    """

    observation: str
    summary: str = ""
    undo: UndoRecord | None = None
    touched: Sequence[UUID] = ()
    sources: Sequence[str] = ()
    said: str | None = None
    asks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """How people are told of the call: of what it is to do (an infinitive), while it runs, when done, when it failed.
    `icon` names a symbol of icons.svg."""

    icon: str
    deed: str
    doing: str
    done: str
    failed: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told of a tool. `schema` is a JSON schema object."""

    name: str
    description: str
    schema: dict[str, JsonValue] = field(hash=False)


class Tool[A: Arguments](ABC):
    """One tool. Stateless: one instance serves every run of the process.

    topic: under which people find it.
    pack: only offered to agents for which this pack is switched on; empty is no pack.
    needs: only offered to agents that have it (`Needs`); empty is nothing.
    context_type: only offered in runs of that context type (mission A6); empty is any.
    pollable: the same call again is a way to wait for something, so it is never taken for a loop.
    contained: what it does stays inside, can be undone, and keeps the mark of a run that has read text of strangers.
    speaks: it says something to the user; the same words are said once in a run.
    foreign: what it returns was written outside, and none of it by the model; an address in it may be opened (T10). It
        labels that itself (`tools.untrusted`), so that its own words stand beside it.
    reads: the kind of source that a call reads (`tools.forgetting`); empty is none that can be forgotten.
    in_sandbox: it runs in the sandbox of a worker's machine, so `withheld` speaks of the machine that asks.
    way_back: of a compensable one, what a person is told of that, without a full stop.
    code: names of arguments that people are shown letter by letter (a command).
    stopping_seconds: beyond WAYMARK_STOP_GRACE_SECONDS, which a call that is stopped takes to say what it has done.
    """

    name: str
    description: str
    wording: Wording
    effect: Effect = Effect.PURE
    risk: Risk = Risk.ALLOWED
    reversal: Reversal = Reversal.NOTHING
    way_back: ClassVar[str] = ""
    audience: ClassVar[frozenset[Audience]] = frozenset(Audience)
    topic: ClassVar[Topic] = Topic.MORE
    pack: ClassVar[str] = ""
    needs: ClassVar[str] = ""
    context_type: ClassVar[str] = ""
    parallel_safe: ClassVar[bool] = True
    pollable: ClassVar[bool] = False
    contained: ClassVar[bool] = False
    speaks: ClassVar[bool] = False
    foreign: ClassVar[bool] = False
    reads: ClassVar[str] = ""
    code: ClassVar[frozenset[str]] = frozenset()
    timeout_seconds: float = 30.0
    stopping_seconds: ClassVar[float] = 0.0
    in_sandbox: bool = False
    Arguments: type[A]

    @abstractmethod
    def run(self, arguments: A, context: ToolContext) -> Outcome:
        """Do it. A `local` tool runs inside the transaction that records its outcome, so it must only touch our
        database through the default connection. Others run in a thread of their own, and are left behind when they
        neither end within `timeout_seconds` nor obey `context.cancel`, for which they have WAYMARK_STOP_GRACE_SECONDS
        and `stopping_seconds`. An `idempotent` tool takes `context.action_id` as key: it may come again after a crash.

        Raises:
            ToolError: for anything that the model should know and may correct; it says that nothing took effect.
            BrokeOff: it may have taken effect. So may any other exception of a tool that acts on the world.
        """

    def probe(self, arguments: A, context: ToolContext) -> Outcome | None:
        """Look up what became of an earlier call with this `context.action_id` (verifiable tools only).

        Returns:
            Its outcome when it happened, None when it certainly did not.

        Raises:
            ToolError: it cannot be told now; the outcome stays unknown.
        """
        raise ToolError("This tool cannot look up what became of a call.")

    def risk_of(self, arguments: A) -> Risk:
        """The risk of one call, where that depends on its arguments (a command)."""
        return self.risk

    def expected(self, arguments: A, context: ToolContext) -> UndoRecord | None:
        """What a call would change if it ran now, for the person who decides about it; compared again before it runs.
        Changes nothing. None: that cannot be told."""
        return None

    def is_contained(self, arguments: A, context: ToolContext) -> bool:
        """Whether one call is `contained`, where that depends on its arguments."""
        return self.contained

    @property
    def is_work(self) -> bool:
        """Whether a call can prove that a step of a plan was done (mission A8). One that only speaks or plans cannot,
        nor one that only reads, unless it looks up what lies outside."""
        return self.effect is not Effect.PURE

    def went_well(self, observation: str) -> bool:
        """Whether a call that is done and gave this back was a success, as far as it proves anything (mission A8)."""
        return True

    def counts_unchanged(self, arguments: A) -> bool:
        """Whether a call proves something although it has changed nothing that is on record, because what it did or
        looked at lies outside (mission A8)."""
        return self.reversal is not Reversal.UNDOABLE

    def withheld(self) -> str:
        """Why nobody is offered the tool on this machine, in a sentence; empty when it is offered. Asked before every
        run, so it must cost nothing."""
        return ""

    def subject(self, arguments: A) -> str:
        """The object of the cell's sentence while the call runs ("Creating a note" + subject)."""
        return ""

    def tells_others(self, sources: Sequence[str]) -> bool:
        """Whether a call, though it only reads, carries its arguments to somebody to whom text from these sources may
        not send them (T10)."""
        return False

    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, _schema(self.Arguments))


class _Untitled(GenerateJsonSchema):
    """A title that only repeats the name of its field costs tokens in every call."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


@cache
def _schema(arguments: type[Arguments]) -> dict[str, JsonValue]:
    """Kept, because making the schema of five tools takes a millisecond or two."""
    schema = arguments.model_json_schema(schema_generator=_Untitled)
    schema.pop("title", None)
    return schema
