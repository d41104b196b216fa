"""What the scripted model does: whatever the user's last message tells it to, so that any number may talk at once.

`do: jot put+mail peek@0.5 mail*3~1` is four replies, the first with one call, the second with two, the third after half
a second, the fourth with three calls that each take a second; then comes the answer. `end@2` delays that answer,
`fail` is a server's error, once. Where it stands it knows from the number of results since that message, so it goes on
after a crash like any model.
"""

import re
from dataclasses import dataclass, field
from functools import cache

from tests.llm_script import Reply, Request, Status, Step

PLAN = re.compile(r"do: ([a-z*+~@0-9. ]+)")
CALL = re.compile(r"([a-z]+)(?:\*(\d+))?(?:~([\d.]+))?")
NO_CALLS = {"end", "fail"}
ANSWER = "All of it is done, as far as I can tell."
FAILURE = Status(500, body={"error": {"message": "try again"}})


@dataclass(frozen=True, slots=True)
class Stage:
    """One reply: its calls (name, seconds to hold), and how long the model takes to begin."""

    calls: tuple[tuple[str, float], ...]
    pause: float
    fails: bool


@dataclass
class Mind:
    """
    failed: where it has failed already.
    scripted: answers for the messages that hold a marker, before any plan.
    """

    failed: set[tuple[str, int]] = field(default_factory=set)
    scripted: dict[str, list[Step]] = field(default_factory=dict)

    def __call__(self, request: Request) -> Step:
        """The reply that is due."""
        said, results = request.last_user_text, request.results
        for marker, steps in self.scripted.items():
            if marker in said and steps:
                return steps.pop(0)
        found = PLAN.findall(said)
        for number, stage in enumerate(staged(found[-1].strip()) if found else ()):
            if stage.fails and not results and (said, number) not in self.failed:
                self.failed.add((said, number))
                return FAILURE
            if not results and not stage.fails:
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
        stages.append(Stage(tuple(_calls(calls)), float(pause or 0), calls == "fail"))
    return tuple(stages)


def _calls(word: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, count, hold in CALL.findall(word):
        if name not in NO_CALLS:
            found += [(name, float(hold or 0))] * int(count or 1)
    return found
