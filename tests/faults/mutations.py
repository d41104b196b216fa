"""F18: a fault tried on an engine that lacks one of its safeguards (mutants.py). A suite that notices nothing then
would show nothing otherwise."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.faults import ends, links
from tests.faults.rules import LOST, Violation
from tests.faults.site import Site
from tests.faults.trial import Tally, judged


class Mutation(NamedTuple):
    """What is taken out, the scenario that shows it, and the words of the violation that must be found."""

    mutant: str
    scenario: Callable[..., Tally]
    words: str


def noticed(mutation: Mutation, site: Site, rounds: int, dice: Random) -> Tally:
    """F18: the violations are what is wanted here; to find none is the failure."""
    tally = mutation.scenario(site, rounds, dice, mutant=mutation.mutant)
    seen = [each for each in tally.found if mutation.words in f"{each.words} {each.where}"]
    missed = [Violation(LOST, "F18 nothing was noticed", str(tally.found))] * (not seen)
    name = mutation.mutant.replace("_", " ")
    return Tally(f"F18 {name}", tally.repetitions, missed, remark=f"noticed {len(seen)} times: {mutation.words}")


def _effects(site: Site, rounds: int, dice: Random, mutant: str = "") -> Tally:
    goals = site.goals(1)
    with site.worker(mutant=mutant):
        for _ in range(rounds):
            site.door.send(goals[0], "jot mail")
            site.quiet(goals)
    return judged(site, "effects", goals, rounds)


MUTATIONS = [
    Mutation("no_fence", ends.worker_frozen_before_its_last_write, "does not hold it"),
    Mutation("no_self_fence", links.postgres_black_hole, "I5 an effect after the takeover"),
    Mutation("no_start", _effects, "an effect without a record"),
]
