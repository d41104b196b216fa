"""When a run ends although the model would go on (mission B1)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memory.messages import ToolUse

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
    """Counts one run against its limits. Durations are seconds on the monotonic clock."""

    iterations: int
    seconds: float
    same_tool: int
    history_entries: int | None
    step: int = 0
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    tool: str = ""
    tool_repeats: int = 0
    broken_replies: int = 0

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

    def after_calls(self, calls: Sequence[ToolUse]) -> None:
        self._count_same_tool({call.name for call in calls})
        self.broken_replies = self.broken_replies + 1 if all(call.problem for call in calls) else 0
        if self.broken_replies >= MAX_BROKEN_REPLIES:
            raise LimitReached("broken_calls", f"I stopped: {self.broken_replies} tool calls in a row were malformed.")

    def _count_same_tool(self, names: set[str]) -> None:
        tool = names.pop() if len(names) == 1 else ""
        self.tool_repeats = self.tool_repeats + 1 if tool and tool == self.tool else 1
        self.tool = tool
        if self.tool_repeats >= self.same_tool:
            raise LimitReached("same_tool", f"I stopped: {tool} was used {self.tool_repeats} times in a row.")


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"
