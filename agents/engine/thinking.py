"""The one service that talks to models: `agent_call` for a step of an agent, `ask` for a single answer."""

import random
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import structlog
from django.conf import settings

from agents.budgets.purse import Purse
from agents.budgets.worst import charged
from agents.connections import Choice
from agents.engine.journal import Settled
from agents.engine.retries import Later, Never, Now, RetryPolicy
from agents.engine.written_calls import with_fewer_calls, with_written_calls
from agents.models import CallStatus
from agents.providers import pool
from agents.providers.base import (
    Load,
    ModelRequest,
    Provider,
    ProviderError,
    Reply,
    TextDelta,
    ThinkingDelta,
    Trouble,
    Usage,
)
from agents.providers.estimates import counted
from agents.providers.pricing import Prices, plausible
from memory.degrade import Remedy, View
from memory.grammar import Grammar
from memory.messages import Message, user
from memory.pictures import Pictures
from tools.base import ToolSpec
from tools.cancel import CancelToken

log = structlog.get_logger(__name__)

NOTHING_CALLED = Settled(CallStatus.CANCELLED, Usage(), Decimal(0), 0)


# What another model may help with: this one is away or nobody pays for it. What it has refused goes to nobody else.
OUT_OF_REACH = frozenset(Trouble) - {
    Trouble.TOO_LONG,
    Trouble.ANSWER_LIMIT,
    Trouble.NO_TOOLS,
    Trouble.REFUSED_REQUEST,
}


class CallFailed(Exception):
    """A model call failed and is not repeated now; `verdict` says whether it is later."""

    def __init__(self, error: ProviderError, verdict: Later | Never) -> None:
        super().__init__(error.message)
        self.error = error
        self.verdict = verdict


@dataclass(slots=True)
class Thinker:
    """Calls one agent's model, step by step, on one leased connection.

    on_failure: told of each failed try that will be repeated, and after how many seconds; the text so far is void.
    on_remedy: told of what had to be left out of the history before the server took it.
    stand_in: brings the model that answers for the rest of the run when this one is out of reach, told why; None when
        there is none.
    waited: how often the run has let go of its lease to wait before this call (tier 2 of the retries).
    purse: pays for the calls, where the user has budgets.
    memo: what adapters have made of the history in earlier runs.
    prices: what the agent's user pays. A call is charged when it settles, and keeps that cost (case COS-03 f).
    load: gives the bytes of the user's pictures.
    settled: what the call that is open came to; `NOTHING_CALLED` when its row is started but nothing was sent yet.
    """

    choice: Choice
    system: str
    tools: Sequence[ToolSpec]
    cancel: CancelToken
    on_failure: Callable[[Settled, float], None]
    on_remedy: Callable[[Remedy], None]
    provider: Provider
    policy: RetryPolicy
    stand_in: Callable[[ProviderError], tuple[Choice, Provider] | None]
    waited: int = 0
    purse: Purse | None = None
    memo: dict[str, object] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    settled: Settled = NOTHING_CALLED
    view: View = field(default_factory=View)
    grammar: Grammar = field(default_factory=Grammar)
    pictures: Pictures = field(default_factory=Pictures)
    load: Load | None = None

    def agent_call(self, messages: Sequence[Message]) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        """Yield the reply's pieces, return the whole. `settled` then says what the call came to.

        Raises:
            CallFailed: the call failed and will not be repeated now.
            OutOfBudget, Unpriced: it cannot be paid for.
            Cancelled: the run was stopped.
        """
        held = 0
        while True:
            started = time.monotonic()
            try:
                reply = yield from self._once(messages, started)
            except ProviderError as error:
                self.settled = self._settle(CallStatus.FAILED, error.usage, started, error)
                pause, held = self._after(error, messages, held)
                log.warning("model call failed, will be repeated", error=error.message, trouble=error.trouble)
                self.on_failure(self.settled, pause)
                self.settled = NOTHING_CALLED
                self.cancel.sleep(pause)
            else:
                self._succeeded()
                written = with_written_calls(reply, messages, {tool.name for tool in self.tools})
                return with_fewer_calls(written, settings.WAYMARK_MAX_CALLS)

    def begin_anew(self) -> None:
        """The call that failed is repeated with another history, not with a longer one."""
        self.on_failure(self.settled, 0.0)
        self.settled, self.view = NOTHING_CALLED, View()
        self._unseen()

    def _after(self, error: ProviderError, messages: Sequence[Message], held: int) -> tuple[float, int]:
        """Seconds until the call may be repeated under this lease, and how often it was then.

        Raises:
            CallFailed: it may not.
        """
        if self.purse and self.purse.ask_less(error):
            return 0.0, held
        if error.refuses_content and self.view.degrade(messages):
            self._unseen()
            return 0.0, held
        verdict = self.policy.after(error, held, self.waited, random.random())  # noqa: S311 (no secret)
        if isinstance(verdict, Now):
            return verdict.seconds, held + 1
        if error.trouble in OUT_OF_REACH and (other := self.stand_in(error)):
            self._change(*other)
            return 0.0, 0
        raise CallFailed(error, verdict)

    def _change(self, choice: Choice, provider: Provider) -> None:
        """Another model answers from now on, at its own price."""
        self.choice, self.provider, self.view = choice, provider, View()
        self._unseen()
        if self.purse:
            price = self.prices.of(choice.endpoint, choice.model)
            self.purse.change(choice.model, price, choice.capabilities)

    def _unseen(self) -> None:
        """What is sent next begins otherwise than what was sent before."""
        self.grammar, self.pictures = Grammar(), Pictures(self.choice.can_see)

    def _succeeded(self) -> None:
        self.waited = 0
        if remedy := self.view.accepted():
            self.on_remedy(remedy)

    def _once(self, messages: Sequence[Message], started: float) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        self.cancel.check()
        sent = self.pictures.of(self.view.of(messages))
        self.grammar.check(sent)
        request = ModelRequest(self.choice.model, self.system, sent, self.tools, memo=self.memo, load=self.load)
        if self.purse:
            request = self.purse.admit(request)
        self.settled = self._settle(CallStatus.CANCELLED, Usage(), started)
        for chunk in self.provider.stream(request, self.cancel):
            if isinstance(chunk, Reply):
                self.settled = self._settle(CallStatus.DONE, counted(chunk, request), started)
                if self.purse:
                    self.purse.replied(request, chunk)
                return chunk
            yield chunk
        raise AssertionError("a stream ends with its reply")

    def _settle(self, status: CallStatus, usage: Usage, started: float, error: ProviderError | None = None) -> Settled:
        usage = plausible(usage)
        spent = self.prices.cost(self.choice.endpoint, self.choice.model, usage)
        charge = self.purse.charge(usage, spent, error) if self.purse else charged(usage, spent)
        latency = round((time.monotonic() - started) * 1000)
        return Settled(status, usage, spent, latency, error.message if error else "", *charge)


def ask(choice: Choice, system: str, text: str, cancel: CancelToken | None = None, most: int | None = None) -> Reply:
    """One answer to one text, without tools: summaries, titles. Tokens that were not counted are estimated.

    Args:
        most: tokens of output; None leaves the limit to the vendor.

    Raises:
        ProviderError: the call failed.
    """
    request = ModelRequest(choice.model, system, [user(text)], max_output_tokens=most)
    with pool.lease(choice.endpoint) as provider:
        for chunk in provider.stream(request, cancel or CancelToken()):
            if isinstance(chunk, Reply):
                return replace(chunk, usage=counted(chunk, request))
    raise AssertionError("a stream ends with its reply")
