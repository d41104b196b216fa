"""The one service that talks to models: `agent_call` for a step of an agent, `call` for a single answer."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import structlog

from agents.connections import Choice
from agents.engine.journal import Settled
from agents.models import CallStatus
from agents.providers import pool
from agents.providers.base import (
    ModelRequest,
    Provider,
    ProviderError,
    Reply,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from agents.providers.pricing import cost
from memory.messages import Message, user
from tools.base import ToolSpec
from tools.cancel import CancelToken

log = structlog.get_logger(__name__)

# While the lease is held, a failed call is repeated this often, after this pause (docs/reliability.md, tier 1).
TRIES = 3
PAUSE_SECONDS = 1.5
# A vendor that asks for a longer pause than this is not waited for here. Seconds.
LONGEST_PAUSE = 10.0


NOTHING_CALLED = Settled(CallStatus.CANCELLED, Usage(), Decimal(0), 0)


@dataclass(slots=True)
class Thinker:
    """Calls one agent's model, step by step, on one leased connection.

    on_failure: told of each failed try that will be repeated, after which the text so far is void.
    settled: what the call that is open came to; `NOTHING_CALLED` when its row is started but nothing was sent yet.
    """

    choice: Choice
    system: str
    tools: Sequence[ToolSpec]
    cancel: CancelToken
    on_failure: Callable[[Settled], None]
    provider: Provider
    settled: Settled = NOTHING_CALLED

    def agent_call(self, messages: Sequence[Message]) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        """Yield the reply's pieces, return the whole. `settled` then says what the call came to.

        Raises:
            ProviderError: the call failed and will not be repeated now.
            Cancelled: the run was stopped.
        """
        for tries_left in reversed(range(TRIES)):
            started = time.monotonic()
            try:
                return (yield from self._once(messages, started))
            except ProviderError as error:
                self.settled = self._settle(CallStatus.FAILED, error.usage, started, error.message)
                pause = PAUSE_SECONDS if error.retry_after is None else error.retry_after
                if not error.retryable or not tries_left or pause > LONGEST_PAUSE:
                    raise
                log.warning("model call failed, will be repeated", error=error.message, trouble=error.trouble)
                self.on_failure(self.settled)
                self.settled = NOTHING_CALLED
                self.cancel.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _once(self, messages: Sequence[Message], started: float) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        request = ModelRequest(self.choice.model, self.system, messages, self.tools)
        self.settled = self._settle(CallStatus.CANCELLED, Usage(), started)
        for chunk in self.provider.stream(request, self.cancel):
            if isinstance(chunk, Reply):
                self.settled = self._settle(CallStatus.DONE, chunk.usage, started)
                return chunk
            yield chunk
        raise AssertionError("a stream ends with its reply")

    def _settle(self, status: CallStatus, usage: Usage, started: float, error: str = "") -> Settled:
        spent = cost(self.choice.model, self.choice.endpoint.kind, usage)
        return Settled(status, usage, spent, round((time.monotonic() - started) * 1000), error)


def call(choice: Choice, system: str, text: str, cancel: CancelToken | None = None) -> Reply:
    """One answer to one text, without tools: summaries, titles.

    Raises:
        ProviderError: the call failed.
    """
    request = ModelRequest(choice.model, system, [user(text)])
    with pool.lease(choice.endpoint) as provider:
        for chunk in provider.stream(request, cancel or CancelToken()):
            if isinstance(chunk, Reply):
                return chunk
    raise AssertionError("a stream ends with its reply")
