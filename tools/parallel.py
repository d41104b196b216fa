"""Calls in threads of their own: several at once, and one that hangs is left behind.

Threads cannot be killed. A call that neither ends in time nor obeys its stop signal goes on alone; whatever it returns
later is dropped, and its result has been decided without it.
"""

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings

from memory.pool import orm
from tools.cancel import Cancelled, CancelToken
from tools.registry import AnyTool

log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Flight[R]:
    """A call under way. `result` is set by its thread; `stop` reaches only this call."""

    place: int
    seconds: float
    grace: float
    stop: CancelToken = field(default_factory=CancelToken)
    result: Future[R] = field(default_factory=Future)
    until: float = 0

    def start(self, call: Callable[[CancelToken], R], stopped: CancelToken) -> None:
        self.until = time.monotonic() + self.seconds
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(self._fly, call, stopped), daemon=True, name="tool").start()

    def _fly(self, call: Callable[[CancelToken], R], stopped: CancelToken) -> None:
        try:
            with stopped.on_cancel(lambda: self.stop.cancel(stopped.reason)), orm():
                result = call(self.stop)
        except BaseException as error:  # noqa: BLE001 (raised again by whoever waits for it)
            self.result.set_exception(error)
        else:
            self.result.set_result(result)


def times_of(tool: AnyTool) -> tuple[float, float]:
    """The seconds that a call of a tool may take, and those in which it ends once it is stopped."""
    return tool.timeout_seconds, settings.WAYMARK_STOP_GRACE_SECONDS + tool.stopping_seconds


def at_once[R](
    calls: Sequence[tuple[Callable[[CancelToken], R], float, float]],
    stopped: CancelToken,
    may_start: Callable[[], None],
) -> Iterator[tuple[int, R | None]]:
    """Run calls at the same time, at most WAYMARK_PARALLEL_TOOLS of them.

    Args:
        calls: what to run, the seconds it may take, and those in which it ends once it is stopped.
        stopped: ends all of them; those that have not ended in their time are left behind, the rest is not begun.
        may_start: asked before each begins (invariant I5); raises when no call may begin any more.

    Yields:
        The index and the result of each call as it ends; None for one that was left behind. Calls that were not begun
        do not occur.

    Raises:
        Whatever a call raises, or `may_start` other than Cancelled.
    """
    waiting = deque(Flight[R](place, seconds, grace) for place, (_, seconds, grace) in enumerate(calls))
    under_way: dict[Future[R], Flight[R]] = {}
    bell: Future[None] = Future()
    with stopped.on_cancel(lambda: bell.set_result(None)):
        while (waiting or under_way) and not bell.done():
            while waiting and len(under_way) < settings.WAYMARK_PARALLEL_TOOLS:
                try:
                    may_start()
                except Cancelled:  # the bell has rung, or is about to
                    break
                flight = waiting.popleft()
                under_way[flight.result] = flight
                flight.start(calls[flight.place][0], stopped)
            yield from _landed(under_way, bell)
    since = time.monotonic()
    for result, flight in sorted(under_way.items(), key=lambda each: each[1].grace):
        wait([result], timeout=max(0.0, since + flight.grace - time.monotonic()))
        yield flight.place, result.result() if result.done() else None


def _landed[R](under_way: dict[Future[R], Flight[R]], bell: Future[None]) -> Iterator[tuple[int, R | None]]:
    """Wait until a call ends, is overdue, or all are to stop; yield what has ended or is overdue."""
    soonest = min(flight.until for flight in under_way.values())
    everything: list[Future[Any]] = [*under_way, bell]
    ended, _ = wait(everything, timeout=max(0.0, soonest - time.monotonic()), return_when=FIRST_COMPLETED)
    for result in [each for each in under_way if each in ended]:
        yield under_way.pop(result).place, result.result()
    for result in [each for each, flight in under_way.items() if flight.until <= time.monotonic()]:
        flight = under_way.pop(result)
        flight.stop.cancel("timed out")
        log.warning("tool timed out, left behind", seconds=flight.seconds)
        yield flight.place, None
