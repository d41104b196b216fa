"""When a run ends although the model would go on (mission B1)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.engine.loop_guard import LoopGuard

# A model that cannot form a call gets two more tries (cases PRV-04, PRV-09).
MAX_BROKEN_REPLIES = 3


class LimitReached(Exception):
    """`reason` is for programs, the message for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(slots=True)
class Limiter:
    """Counts one run against its limits. Durations are seconds on the monotonic clock.

    same_tool: how many replies in a row may use one tool and nothing else without anything new (mission B1 "same tool
        5 times in a row", reconciled with B2 and case LOO-01 c: 25 notes in a row are work, not a loop).
    failures: after how many replies in a row whose calls all failed the run is stalled; and how many may have a call
        that was blocked as a loop, whatever comes between.
    """

    iterations: int
    seconds: float
    same_tool: int
    failures: int
    history_entries: int | None
    guard: LoopGuard
    step: int = 0
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def before_step(self, history_length: int) -> None:
        if self.step >= self.iterations:
            raise LimitReached("iterations", f"I stopped after {self.iterations} steps, the most one run may take.")
        if self.clock() - self.started >= self.seconds:
            raise LimitReached("time", f"I stopped after {_duration(self.seconds)}, the longest one run may take.")
        if self.history_entries is not None and history_length >= self.history_entries:
            raise LimitReached("history", f"I stopped after {self.history_entries} entries of history.")
        self.step += 1

    def after_calls(self) -> None:
        tool, times = self.guard.same_tool
        if self.guard.malformations >= MAX_BROKEN_REPLIES:
            raise LimitReached("broken_calls", f"I stopped: {MAX_BROKEN_REPLIES} tool calls in a row were malformed.")
        if self.guard.blocks >= self.failures:
            raise LimitReached("loop", "I stopped: I was going round in circles, with calls that brought nothing new.")
        if self.guard.failures >= self.failures:
            raise LimitReached("stalled", f"I stopped: {self.guard.failures} tool calls in a row failed.")
        if times >= self.same_tool:
            raise LimitReached(
                "same_tool", f"I stopped: {tool} was used {times} times in a row and brought nothing new."
            )


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"
