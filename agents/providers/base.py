"""The contract between the engine and whoever thinks. An adapter translates in, calls, translates out.

Everything a vendor does oddly stays inside its adapter. No Django here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, Protocol

from memory.messages import Image, Message
from tools.base import ToolSpec
from tools.cancel import CancelToken

type Load = Callable[[Image], bytes | None]

GONE: Final = "it does not exist any more"
"""Why a picture is left out that cannot be loaded (`memory.media.left_out`)."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `system` and `tools` are byte-stable within a session, so that the vendor's prompt cache hits.

    max_output_tokens: None leaves the limit to the vendor.
    memo: where an adapter may keep what it made of the messages, for the next run of the conversation. No two requests
        with the same memo are served at the same time.
    load: gives the bytes of a picture in the messages, always the same ones; None for one that is gone, of which the
        model is told by `GONE`. Without it, so are all.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int | None = None
    memo: dict[str, object] | None = field(default=None, compare=False, repr=False)
    load: Load | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the vendor counted them; None is unknown, which is not zero.

    cached_tokens, written_tokens: read from and written to the vendor's prompt cache; both are part of the input.
    cost: US dollars, where the vendor says itself what it has charged.
    model: which one has answered, where the vendor says so.
    estimated: the tokens are our own guess, because the vendor did not count (case COS-03).
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    cost: Decimal | None = None
    model: str = field(default="", compare=False)
    estimated: bool = False


NOTHING_USED: Final = Usage(0, 0)
"""Of a call that no server has worked on."""


class Finish(StrEnum):
    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole reply, always the last item of a stream. `message` may have no blocks (the model said nothing)."""

    message: Message
    usage: Usage
    finish: Finish


type Chunk = TextDelta | ThinkingDelta | Reply


class Trouble(StrEnum):
    """What went wrong, in words every vendor's errors are translated to."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    OUT_OF_CREDIT = "out_of_credit"
    BAD_KEY = "bad_key"
    MODEL_UNKNOWN = "model_unknown"
    TOO_LONG = "too_long"
    ANSWER_LIMIT = "answer_limit"
    NO_TOOLS = "no_tools"
    REFUSED_REQUEST = "refused_request"
    BROKEN_STREAM = "broken_stream"


class ProviderError(Exception):
    """A call failed.

    Args:
        trouble: what kind.
        message: for the user, with the vendor's own words; never holds a key.
        retryable: whether the same request may succeed later.
        retry_after: seconds the vendor asked to wait, None when it did not.
        usage: what the failed attempt is known to have used.
        status: the HTTP status it came with, 0 when it came without one.
        is_denial: whether the server has said no in the place of an answer, and so will hardly charge for one. One that
            took too long, lost the line or gave up in the middle may have worked.
        longest: tokens that an answer may be limited to at most, where that limit was refused and the server says it.
    """

    def __init__(
        self,
        trouble: Trouble,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        usage: Usage | None = None,
        status: int = 0,
        is_denial: bool = False,
        longest: int | None = None,
    ) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage = usage or Usage()
        self.status = status
        self.is_denial = is_denial
        self.longest = longest

    @property
    def refuses_content(self) -> bool:
        """Whether the server would not take what was sent: the same bytes must never go there again (invariant I16)."""
        return self.trouble is Trouble.REFUSED_REQUEST and self.status in (400, 422)


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    cached: of input that was read from the vendor's cache. written: of input that was written to it; None: as any.
    source, date: where the figures come from, and of which day or edition they are.
    longer: prices of longer requests, ascending, each with the number of input tokens above which it holds for all.
    """

    input: Decimal
    output: Decimal
    cached: Decimal
    source: str
    date: str
    written: Decimal | None = None
    longer: "tuple[tuple[int, Price], ...]" = ()


class Provider(Protocol):
    """One client of one vendor, leased to one run at a time (a shared HTTP pool is quadratic, see docs/performance)."""

    def stream(self, request: ModelRequest, cancel: CancelToken) -> Iterator[Chunk]:
        """Call the model; yield deltas as they arrive and the whole Reply last.

        Raises:
            ProviderError: the call failed; deltas already yielded must be discarded.
            Cancelled: the token was set; the connection is closed.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may go on without anything, in seconds.

    idle: silence on the wire; comments count as life. silent: no output of the model, whatever else arrives.
    """

    idle: float = 120.0
    silent: float = 600.0


@dataclass(frozen=True, slots=True)
class Routing:
    """Which of the vendors behind a router may serve a call.

    order: names of vendors to try first. only_these: no other is tried after them.
    require_parameters: only vendors that honour everything that is asked, such as tools.
    deny_training: only vendors that neither keep nor learn from what they are sent.
    title, referer: by which the router lists this program publicly; empty sends nothing.
    """

    order: tuple[str, ...] = ()
    only_these: bool = False
    require_parameters: bool = False
    deny_training: bool = False
    title: str = ""
    referer: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is reached and with what. `api_key` is never logged.

    anywhere: it may be on this machine and in its network too, not only on the internet; for staff (security.md T9).
    answer_length: characters of a reply, after which it is ended as if the model had reached its own limit.
    routing: for kinds that route.
    window: tokens of context to ask for, of a server that lets its clients choose; 0 leaves it to the server.
    keep_seconds: how long such a server shall keep the model loaded after a call.
    """

    kind: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    patience: Patience = Patience()
    anywhere: bool = False
    answer_length: int = 200_000
    routing: Routing = Routing()
    window: int = 0
    keep_seconds: int = 1_800


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a connection test: one real call with a tool offered.

    tools: whether the model used it; None when the call does not tell.
    """

    ok: bool
    message: str
    tools: bool | None = None
    seconds: float = 0.0
