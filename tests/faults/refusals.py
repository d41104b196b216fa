"""F13: a model's server that refuses, is overloaded, hangs up or hangs, whatever is asked: how often it is asked again,
and when."""

import itertools
import uuid
from random import Random
from typing import NamedTuple

from agents.engine.retries import RetryPolicy
from tests.faults.rules import REPEATED, Violation
from tests.faults.site import FIRST_WAIT, HELD, Site
from tests.faults.trial import Tally, judged
from tests.llm_script import D, Drop, Hang, Status, Step

# What the contract says, with this site's pauses.
POLICY = RetryPolicy(held_seconds=HELD, first_seconds=FIRST_WAIT)
ASKED = 0.4
WORDS = D({"role": "assistant", "content": "Well, "})


def _refusal(code: int, **headers: str) -> Status:
    return Status(
        code, {name.replace("_", "-"): value for name, value in headers.items()}, {"error": {"message": "no"}}
    )


class Trouble(NamedTuple):
    """What the server does; how often it may be tried after a longer wait, None when never again; and how many seconds
    it asks to be left alone."""

    name: str
    step: Step
    tries: int | None
    asked: float = 0

    @property
    def waits(self) -> list[float]:
        """The shortest pauses that are allowed, one for each time that it is asked again."""
        if self.tries is None:
            return []
        held = [max(POLICY.held_seconds, self.asked)] * POLICY.held_tries
        return held + [max(POLICY.first_seconds * 2**number, self.asked) for number in range(self.tries)]


PASSING = [
    Trouble("429", _refusal(429), POLICY.rate_limit_tries),
    Trouble("429 with a pause", _refusal(429, retry_after_ms=f"{ASKED * 1000:.0f}"), POLICY.rate_limit_tries, ASKED),
    Trouble("529", _refusal(529), POLICY.other_tries),
    Trouble("503", _refusal(503), POLICY.other_tries),
    Trouble("reset", Drop(), POLICY.network_tries),
    Trouble("reset after words", Drop([WORDS]), POLICY.network_tries),
]
LASTING = [Trouble(f"{code}", _refusal(code), None) for code in (401, 402, 403, 404)]
HANGING = [
    Trouble("hang", Hang(60), POLICY.network_tries),
    Trouble("hang after words", Hang(60, [WORDS]), POLICY.network_tries),
]
REFUSED = Trouble("400", _refusal(400), None)


def refused(site: Site, rounds: int, dice: Random) -> Tally:
    """F13: 429, 529, resets, and what does not pass; 400, after which the same bytes are never sent again."""
    return _matrix(site, rounds, "F13 429, 529, reset, 4xx", [*PASSING, *LASTING, REFUSED])


def hung(site: Site, rounds: int, dice: Random) -> Tally:
    """F13: the server hangs each time."""
    return _matrix(site, rounds, "F13 hang", HANGING, mutant="impatient")


def _matrix(site: Site, rounds: int, fault: str, troubles: list[Trouble], mutant: str = "") -> Tally:
    goals, found, counts = site.goals(len(troubles)), list[Violation](), dict[str, int]()
    with site.worker(mutant=mutant):
        for _ in range(rounds):
            markers = [f"[{uuid.uuid4()}]" for _ in troubles]
            for goal, marker, trouble in zip(goals, markers, troubles, strict=True):
                site.mind.always(marker, trouble.step)
                site.door.say(goal, marker, uuid.uuid4())
            site.quiet(goals, 120)
            for marker, trouble in zip(markers, troubles, strict=True):
                asked = site.mind.asked.pop(marker, [])
                del site.mind.scripted[marker]
                counts[trouble.name] = len(asked)
                found += _same_bytes(asked) if trouble is REFUSED else _wrong(trouble, [at for at, _ in asked])
            for goal in goals:
                site.door.send(goal, "jot")
            site.quiet(goals)
    remark = ", ".join(f"{name}: {count}" for name, count in counts.items())
    return judged(site, fault, goals, rounds * len(goals), remark=f"asked {remark}", also=found)


def _wrong(trouble: Trouble, asked: list[float]) -> list[Violation]:
    wanted, pauses = trouble.waits, [later - sooner for sooner, later in itertools.pairwise(asked)]
    if len(pauses) != len(wanted):
        return [Violation(REPEATED, f"I16 {trouble.name}: asked {len(asked)} times", f"not {len(wanted) + 1}")]
    return [
        Violation(REPEATED, f"I16 {trouble.name}: asked again too early", f"{pause:.3f} s, not {least}")
        for pause, least in zip(pauses, wanted, strict=True)
        if pause < least
    ]


def _same_bytes(asked: list[tuple[float, bytes]]) -> list[Violation]:
    twice = len(asked) - len({raw for _, raw in asked})
    return [Violation(REPEATED, "I16 the same bytes again after a 400", str(twice))] * bool(twice or not asked)
