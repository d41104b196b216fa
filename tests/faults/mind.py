"""What the scripted model does: whatever the user's last message tells it to, so that any number may talk at once.

`do: jot put+mail peek@0.5 mail*3~1` is four replies, the first with one call, the second with two, the third after half
a second, the fourth with three calls that each take a second; then comes the answer. `end@2` delays that answer.
The words of TROUBLES stand for a server that fails there, once. Where it stands it knows from the number of results
since that message, so it goes on after a crash like any model.
"""

import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from tests.llm_script import D, Hang, Raw, Reply, Request, Status, Step

PLAN = re.compile(r"do: ([a-z*+~@0-9. ]+)")
CALL = re.compile(r"([a-z]+)(?:\*(\d+))?(?:~([\d.]+))?")
ANSWER = "All of it is done, as far as I can tell."
HUNG_SECONDS = 90
TROUBLES: dict[str, Step] = {
    "fail": Status(500, body={"error": {"message": "try again"}}),
    "deny": Status(401, body={"error": {"message": "no such key"}}),
    "mute": Hang(HUNG_SECONDS),
    "stall": Hang(HUNG_SECONDS, [D({"role": "assistant", "content": "Well, "})]),
    "beat": Raw([b": still here\n\n"] * (10 * HUNG_SECONDS), gap=0.1),
}
NO_CALLS = {"end", *TROUBLES}


@dataclass(frozen=True, slots=True)
class Stage:
    """One reply: its calls (name, seconds to hold), and how long the model takes to begin; or a trouble."""

    calls: tuple[tuple[str, float], ...]
    pause: float
    trouble: Step | None


@dataclass
class Mind:
    """
    failed: where it has failed already.
    scripted: answers for the messages that hold a marker, before any plan.
    asked: when (by the monotonic clock) and in which bytes it was asked for those.
    summary: what it makes of a session that is archived.
    """

    failed: set[tuple[str, int]] = field(default_factory=set)
    scripted: dict[str, Iterator[Step]] = field(default_factory=dict)
    asked: dict[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    summary: Callable[[], Step] = lambda: Reply("They talked.")

    def __call__(self, request: Request) -> Step:
        """The reply that is due."""
        said, results = request.last_user_text, request.results
        if said.startswith("<session>"):
            return self.summary()
        for marker, steps in list(self.scripted.items()):
            if marker in said and (step := next(steps, None)) is not None:
                self.asked.setdefault(marker, []).append((time.monotonic(), request.raw))
                return step
        return self._planned(said, results)

    def always(self, marker: str, step: Step) -> None:
        """Answer every message that holds the marker by `step`."""
        self.scripted[marker] = itertools.repeat(step)

    def _planned(self, said: str, results: int) -> Step:
        found = PLAN.findall(said)
        for number, stage in enumerate(staged(found[-1].strip()) if found else ()):
            if stage.trouble and not results and (said, number) not in self.failed:
                self.failed.add((said, number))
                return stage.trouble
            if not results and not stage.trouble:
                calls = [(name, {"hold": hold} if hold else {}) for name, hold in stage.calls]
                return Reply("" if calls else ANSWER, calls=calls, first_token=stage.pause or None)
            results -= len(stage.calls)
        return Reply(ANSWER)


@cache
def staged(plan: str) -> tuple[Stage, ...]:
    """Read a plan."""
    stages = []
    for word in plan.split():
        calls, _, pause = word.partition("@")
        stages.append(Stage(tuple(_calls(calls)), float(pause or 0), TROUBLES.get(calls)))
    return tuple(stages)


def _calls(word: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, count, hold in CALL.findall(word):
        if name not in NO_CALLS:
            found += [(name, float(hold or 0))] * int(count or 1)
    return found
