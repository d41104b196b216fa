"""F2, F4, F5: the links between a worker and PostgreSQL or the model are cut, swallow everything, or hang."""

import re
import time
from functools import partial
from random import Random

from tests.faults import oracle
from tests.faults.people import approved_until_quiet
from tests.faults.proxy import Cut, Mode
from tests.faults.site import AT_ONCE, LEASE, Site
from tests.faults.trial import Tally, endings, is_taken_up, judged, taken_up
from tests.processes import wait_until

# What only the statements of the journal carry: their entries. And the commit of a local effect.
JOURNAL, LOCAL = re.compile(b'"seq"'), re.compile(b"COMMIT")


def commit_cut(side: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F2: the link breaks before a commit reaches PostgreSQL, or after, when only the answer is lost."""
    goals, recoveries, cuts = site.goals(AT_ONCE), list[float](), 0
    with site.worker(fragile=True), site.worker(fragile=True):
        for _ in range(rounds):
            piece = dice.choice([JOURNAL, JOURNAL, LOCAL])
            cut = Cut(piece, after=side == "after", skip=dice.randint(0, 12))
            site.to_postgres.cuts.append(cut)
            for goal in goals:
                site.door.send(goal, "jot+put mail peek+mail jot")
            while not cut.done.wait(0.05) and site.live(goals):
                pass
            at = time.time()
            site.to_postgres.cuts.clear()
            approved_until_quiet(site, goals)  # a mail like one whose outcome came to be unknown asks first
            cuts += cut.done.is_set()
            recoveries += taken_up(site, goals, at) if cut.done.is_set() else []
    return judged(site, f"F2 link cut {side} a commit", goals, cuts, recoveries, endings(site, goals))


def postgres_black_hole(site: Site, rounds: int, dice: Random, mutant: str = "") -> Tally:
    """F4: PostgreSQL is out of reach without a word. The worker must stop acting before another may take over."""
    goals, recoveries = site.goals(2), list[float]()
    for _ in range(rounds):
        seen = len(site.sink.happened)
        with site.worker(fragile=True, mutant=mutant):
            # One that commits between its effects, and one that has many to start without a word to PostgreSQL.
            for goal, plan in zip(goals, ("mail*60~0.1", "peek*240~0.3"), strict=True):
                site.door.send(goal, plan)
            wait_until(partial(site.sink.has_more_than, seen + 2), 30)
            site.to_postgres.mode = Mode.HOLE
            swallowed = time.time()
            with site.worker():
                wait_until(partial(is_taken_up, site, goals, swallowed), LEASE + 30)
                recoveries += taken_up(site, goals, swallowed)
                time.sleep(1)  # the time to do harm
                site.to_postgres.heal()
                site.quiet(goals)
    late = oracle.late(site.database, site.sink, [goal.thread for goal in goals])
    remark = f"{len(late)} late effects"
    return judged(site, "F4 black hole to PostgreSQL", goals, rounds * len(goals), recoveries, remark, late)


def model_link_reset(site: Site, rounds: int, dice: Random) -> Tally:
    """F2: the same for the link to the model, in the middle of its words."""
    goals = site.goals(AT_ONCE)
    with site.worker(fragile=True):
        for _ in range(rounds):
            for goal in goals:
                site.door.send(goal, "jot mail@0.1 put@0.1 end@0.2")
            time.sleep(dice.uniform(0, 0.8))
            site.to_model.reset()
            site.quiet(goals)
    return judged(site, "F2 link to the model reset", goals, rounds * AT_ONCE, remark=endings(site, goals))


def valkey_link_lost(site: Site, rounds: int, dice: Random) -> Tally:
    """F8: Valkey is refused, slow or silent for a while."""
    goals = site.goals(AT_ONCE)
    with site.worker(fragile=True):
        for number in range(rounds):
            for goal in goals:
                site.door.send(goal, "jot put~0.2 mail~0.2 jot")
            site.to_valkey.mode = (Mode.REFUSE, Mode.HOLE)[number % 2]
            site.to_valkey.reset() if number % 2 == 0 else None
            time.sleep(dice.uniform(0.2, 1))
            site.to_valkey.heal()
            site.quiet(goals)
    return judged(site, "F8 link to Valkey lost", goals, rounds * AT_ONCE)


def valkey_away_at_the_start(site: Site, rounds: int, dice: Random) -> Tally:
    """F8: a worker is started while Valkey is refused: it waits for it."""
    goals = site.goals(AT_ONCE)
    for _ in range(rounds):
        site.to_valkey.mode = Mode.REFUSE
        site.to_valkey.reset()
        for goal in goals:
            site.door.send(goal, "jot")
        with site.worker(fragile=True) as worker:
            wait_until(lambda worker=worker: "redis is away" in site.log(worker), 30)  # type: ignore[misc]
            site.to_valkey.heal()
            site.quiet(goals)
    return judged(site, "F8 Valkey away at the start", goals, rounds * AT_ONCE)
