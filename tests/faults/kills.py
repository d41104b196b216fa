"""F1, F3, F10, F11: processes are killed, frozen, told to stop, and runs are stopped."""

import contextlib
import signal
import time
import uuid
from functools import partial
from random import Random

from tests.faults.door import Goal
from tests.faults.rules import LOST, REPEATED, Violation
from tests.faults.site import AT_ONCE, LEASE, Site
from tests.faults.trial import Tally, endings, is_taken_up, judged, statuses, taken_up
from tests.processes import wait_until

# Comes through every durable point: local calls within and at the end of a reply, others, and a model's failure.
PLAN = "jot+put fail mail peek jot"
# Fails until the run lets go of its lease to wait.
WAITING_PLAN = "jot fail fail fail mail jot"
WAITING_POINTS = ["wait.before", "wait.after"]
# before and after each statement of the journal that a worker commits
POINTS = [f"{point}.{side}" for point in ("D1", "D2", "D5", "D6", "D7", "D8") for side in ("before", "after")]
EFFECTS = ["put", "mail"]


def worker_killed_at(point: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F1: kill -9 at a durable point, at a random one of its passes; whatever else the worker held dies with it."""
    goals, recoveries = site.goals(AT_ONCE), list[float]()
    for _ in range(rounds):
        with site.worker(point=f"{point}:{dice.randint(1, AT_ONCE)}") as victim:
            for goal in goals:
                site.door.send(goal, WAITING_PLAN if point in WAITING_POINTS else PLAN)
            assert victim.is_dead(30), f"no run came to {point}"
            recoveries += _taken_up_by_another(site, goals)
    return judged(site, f"F1 kill -9 at {point}", goals, rounds * AT_ONCE, recoveries)


def worker_killed_in(effect: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F1: kill -9 between an effect outside and the record of it."""
    goals, recoveries = site.goals(AT_ONCE), list[float]()
    for _ in range(rounds):
        seen = sum(site.sink.times(effect).values())
        with site.worker() as victim:
            for goal in goals:
                site.door.send(goal, f"jot {effect}~0.5 peek")
            wanted = seen + dice.randint(1, AT_ONCE)
            wait_until(partial(_has_happened, site, effect, wanted), 30)
            victim.kill()
            recoveries += _taken_up_by_another(site, goals)
    return judged(site, f"F1 kill -9 in the effect of {effect}", goals, rounds * AT_ONCE, recoveries)


def web_killed_at(point: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F1: kill -9 of the web process as it accepts; the device sends the same again to another."""
    goals, sent = site.goals(AT_ONCE), 0
    with site.worker():
        for _ in range(rounds):
            web, port = site.start("web", point=f"{point}:{dice.randint(1, AT_ONCE)}")
            doomed = site.second_door(port)
            for goal in goals:
                client = uuid.uuid4()
                with contextlib.suppress(OSError):
                    doomed.once(goal, "jot mail", client)
                site.door.send(goal, "jot mail", client)
                sent += 1
            assert web.is_dead(5), f"no message came to {point}"
        site.quiet(goals)
    return judged(site, f"F1 kill -9 at {point}", goals, sent)


def worker_frozen(site: Site, rounds: int, dice: Random) -> Tally:
    """F3: SIGSTOP past the lease, another takes over, SIGCONT: the first must not write any more. Every other time it
    is frozen in an effect, and so wakes up behind all its own checks."""
    goals, recoveries = site.goals(AT_ONCE), list[float]()
    for number in range(rounds):
        with site.worker() as zombie:
            seen = len(site.sink.happened)
            for goal in goals:
                site.door.send(goal, "put~0.4 jot mail~0.4 peek~0.4 jot")
            if number % 2:
                time.sleep(dice.uniform(0.2, 1.4))
            else:
                wait_until(partial(site.sink.has_more_than, seen), 30)
            zombie.send(signal.SIGSTOP)
            frozen = time.time()
            with site.worker():
                wait_until(partial(is_taken_up, site, goals, frozen), LEASE + 20)
                zombie.send(signal.SIGCONT)
                site.quiet(goals)
                time.sleep(1)  # the time to do harm
            recoveries += taken_up(site, goals, frozen)
    return judged(site, "F3 SIGSTOP past the lease", goals, rounds * AT_ONCE, recoveries)


def deployed(site: Site, rounds: int, dice: Random) -> Tally:
    """F10: SIGTERM, a new worker comes, again and again, while everybody goes on talking."""
    goals = site.goals(2 * AT_ONCE)
    old, _ = site.start("worker")
    for number in range(rounds):
        for goal in dice.sample(goals, AT_ONCE):
            site.door.send(goal, "jot@0.1 put@0.1 mail@0.1 jot peek@0.2 jot@0.1")
        time.sleep(dice.uniform(0, 0.6))
        new, _ = site.start("worker")
        old.send(signal.SIGTERM)
        assert old.is_dead(30), f"the worker did not end after SIGTERM {number}"
        old = new
    site.quiet(goals)
    old.kill()
    ended = statuses(site, goals)
    row = site.database.execute(
        "SELECT coalesce(sum(recoveries), 0) FROM memory_agentrun WHERE thread_id = ANY(%s)",
        [[goal.thread for goal in goals]],
    ).fetchone()
    assert row
    wrong = [Violation(LOST, "I18 a run was ended by the deploy", str(ended))] * bool(set(ended) - {"succeeded"})
    return judged(site, "F10 SIGTERM", goals, rounds, remark=f"{row[0]} leases ran out", also=wrong)


def stopped(site: Site, rounds: int, dice: Random) -> Tally:
    """F11: stop at a random moment; every other time the worker is killed as well, so that another one settles it."""
    goals, stops = site.goals(AT_ONCE), dict[str, float]()
    for number in range(rounds):
        with site.worker() as worker:
            runs = [site.door.send(goal, "put~0.2 jot mail~0.2 peek jot end@0.5").run for goal in goals]
            time.sleep(dice.uniform(0, 1))
            stops |= {run: site.door.stop(run) for run in runs}
            if number % 2:
                worker.kill()
                with site.worker():
                    site.quiet(goals)
            else:
                site.quiet(goals)
    return judged(site, "F11 stop at any moment", goals, len(stops), also=_late_starts(site, stops))


def stopped_at(site: Site, rounds: int, dice: Random) -> Tally:
    """F11: stop at each point, one after the other, while the worker stands still there."""
    goals, stops = site.goals(2), dict[str, float]()
    for number in range(rounds):
        point = (*POINTS, *WAITING_POINTS)[number % len((*POINTS, *WAITING_POINTS))]
        with site.worker(point=f"{point}:{dice.randint(1, 2)}:SIGSTOP") as worker:
            plan = WAITING_PLAN if point in WAITING_POINTS else PLAN
            runs = [site.door.send(goal, plan).run for goal in goals]
            wait_until(worker.is_frozen, 30)
            for run in runs:
                site.door.stop(run)
            worker.send(signal.SIGCONT)
            # What it was about to do when it was frozen it does now; it begins nothing more.
            stops |= dict.fromkeys(runs, time.time())
            site.quiet(goals)
    remark = endings(site, goals)
    return judged(site, "F11 stop at each point", goals, len(stops), remark=remark, also=_late_starts(site, stops))


def _late_starts(site: Site, stops: dict[str, float]) -> list[Violation]:
    """I15: no tool starts later than five seconds after a stop was acknowledged."""
    return [
        Violation(REPEATED, "I15 an effect after the stop", each.call)
        for each in site.sink.happened
        if each.at > stops.get(each.run, float("inf")) + 5
    ]


def _taken_up_by_another(site: Site, goals: list[Goal]) -> list[float]:
    died = time.time()
    with site.worker():
        site.quiet(goals)
    return taken_up(site, goals, died)


def _has_happened(site: Site, effect: str, times: int) -> bool:
    return sum(site.sink.times(effect).values()) >= times
