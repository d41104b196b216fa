"""F5: tools and models that hang while their worker lives and goes on renewing its leases."""

import signal
import time
from collections.abc import Collection
from functools import partial
from random import Random

from tests.faults.door import Goal
from tests.faults.rules import STUCK, Violation
from tests.faults.sink import FOR_EVER
from tests.faults.site import AT_ONCE, Site
from tests.faults.trial import Tally, endings, judged, statuses, taken_up
from tests.processes import wait_until

SILENCES = ("mute", "stall", "beat")


def tool_hangs(site: Site, rounds: int, dice: Random) -> Tally:
    """F5: tools that pay no heed to their stop signal, until all is over. Every other time the run is stopped as well.
    What they return in the end is nobody's."""
    goals = site.goals(AT_ONCE)
    with site.worker():
        for number in range(rounds):
            seen = len(site.sink.happened)
            runs = [site.door.send(goal, f"jot nap~{FOR_EVER}+fax~{FOR_EVER} jot").run for goal in goals]
            if number % 2:
                wait_until(partial(site.sink.has_more_than, seen), 30)
                for run in runs:
                    site.door.stop(run)
            site.quiet(goals)
            _come_to_themselves(site)
    return _judged(site, "F5 a tool hangs", goals, rounds * AT_ONCE)


def local_tool_hangs(site: Site, rounds: int, dice: Random) -> Tally:
    """F5: a local tool hangs with its transaction open, which nothing can interrupt: the run must lose its lease.
    Either the same worker takes it up again, or (every other time) another, because the first is told to stop."""
    goals, recoveries = site.goals(2), list[float]()
    for number in range(rounds):
        seen = sum(site.sink.times("balk").values())
        with site.worker() as hung:
            for goal in goals:
                site.door.send(goal, f"jot balk~{FOR_EVER} mail")
            wait_until(lambda: sum(site.sink.times("balk").values()) >= seen + len(goals), 30)  # noqa: B023
            at = time.time()
            if number % 2:
                hung.send(signal.SIGTERM)
                with site.worker():
                    site.quiet(goals)
            else:
                site.quiet(goals)
            recoveries += taken_up(site, goals, at)
            _come_to_themselves(site)
    return judged(site, "F5 a local tool hangs", goals, rounds * len(goals), recoveries)


def model_hangs(site: Site, rounds: int, dice: Random) -> Tally:
    """F5: a model whose link stays open and that says nothing, nothing after its first words, or nothing but signs of
    life. Every other time the run is stopped meanwhile."""
    goals = site.goals(len(SILENCES))
    with site.worker(mutant="impatient"):
        for number in range(rounds):
            plans = zip(goals, SILENCES, strict=True)
            runs = [site.door.send(goal, f"jot {silence} mail jot").run for goal, silence in plans]
            if number % 2:
                time.sleep(dice.uniform(0, 2))
                for run in runs:
                    site.door.stop(run)
            site.quiet(goals)
    return _judged(site, "F5 a model hangs", goals, rounds * len(goals))


def _come_to_themselves(site: Site) -> None:
    site.sink.release()
    time.sleep(1)  # the time to do harm


def _judged(site: Site, fault: str, goals: Collection[Goal], repetitions: int) -> Tally:
    """A hang costs nothing but its own call: each run succeeded, unless it was stopped."""
    ended, bad = endings(site, goals), set(statuses(site, goals)) - {"succeeded", "cancelled"}
    wrong = [Violation(STUCK, "a hang ended the run", ended)] * bool(bad)
    return judged(site, fault, goals, repetitions, remark=ended, also=wrong)
