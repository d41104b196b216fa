"""F1 at D9 and D10, F12: sessions are archived while people write, and whoever does it dies."""

import time
from collections.abc import Collection
from functools import partial
from random import Random

from rq import Queue

from tests.faults.door import Goal
from tests.faults.rules import LOST, STUCK, Violation
from tests.faults.site import SUMMARY, TICK, Site
from tests.faults.trial import Tally, judged
from tests.llm_script import Reply, Step
from tests.processes import wait_until

ARCHIVERS, SESSIONS, ASKED = 8, 4, 16
POINTS = [f"{point}.{side}" for point in ("D9", "D10") for side in ("before", "after")]
# A reservation is taken up when it is due and the clock ticks; generous, for machines that do other things too.
TAKEN_UP_SECONDS = 2 * SUMMARY + TICK + 60


def archiver_killed_at(point: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F1: kill -9 around the reservation of a session and its archive. What is reserved the clock finds; where nothing
    is reserved yet the person asks again. A message comes before it is taken up."""
    (goal,), recoveries = site.goals(1), list[float]()
    for number in range(rounds):
        with site.worker():
            site.door.send(goal, "jot mail")
            site.quiet([goal])
        with site.worker(point=point) as victim:
            _ask(site, goal, "by_hand")
            assert victim.is_dead(30), f"no archive came to {point}"
        died = time.time()
        site.door.send(goal, "jot")
        with site.worker():
            wait_until(partial(_is_archived, site, goal, number), TAKEN_UP_SECONDS)
            recoveries.append(time.time() - died)
            site.quiet([goal])
    return judged(site, f"F1 kill -9 at {point}", [goal], rounds, recoveries, also=_left(site, [goal]))


def archivers_and_writer(site: Site, rounds: int, dice: Random) -> Tally:
    """F12: eight archivers reach for the same sessions while a writer goes on; in every round one of them is killed."""
    goals, killed, found = site.goals(SESSIONS), 0, list[Violation]()
    workers = [site.start("worker")[0] for _ in range(ARCHIVERS)]
    everybody, before, site.mind.summary = [*workers], site.mind.summary, _Summaries(dice)
    for _ in range(rounds):
        for _ in range(ASKED):
            _ask(site, dice.choice(goals), dice.choice(["by_hand", "by_hand", "long"]))
        for goal in goals:
            site.door.send(goal, "jot")
            time.sleep(dice.uniform(0, 0.2))
        victim = dice.randrange(ARCHIVERS)
        workers[victim].kill()
        workers[victim], killed = site.start("worker")[0], killed + 1
        everybody.append(workers[victim])
        site.quiet(goals)
    for worker in workers:
        worker.kill()
    site.redis.flushall()
    with site.worker() as last:  # what all of them have left behind, the clock finds
        wait_until(lambda: not _archives(site, goals, "reserved"), TAKEN_UP_SECONDS)
        site.quiet(goals)
    everybody.append(last)
    site.mind.summary = before
    found += [Violation(LOST, "a job failed", each.name) for each in everybody if "job failed" in site.log(each)]
    archives = _archives(site, goals, "done")
    found += [Violation(LOST, "nothing was archived", "")] * (archives < SESSIONS)
    remark = f"{archives} archives, {killed} archivers killed"
    found += _left(site, goals)
    return judged(site, "F12 8 archivers, writer", goals, rounds * SESSIONS, remark=remark, also=found)


class _Summaries:
    """A model that takes its time with summaries, and now and then gives none."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def __call__(self) -> Step:
        text = "" if self._dice.random() < 0.1 else "They talked."
        return Reply(text, first_token=self._dice.choice([0.05, 0.1, 0.5]))


def _is_archived(site: Site, goal: Goal, before: int) -> bool:
    """Whether there is one archive more; where nobody has begun one (or the machine was too slow for it), ask again."""
    if _archives(site, [goal], "done") > before:
        return True
    if not _archives(site, [goal], "reserved"):
        _ask(site, goal, "by_hand")
        time.sleep(1)
    return False


def _ask(site: Site, goal: Goal, reason: str) -> None:
    queue = Queue("default", connection=site.redis)
    queue.enqueue("agents.engine.jobs.archive", str(goal.thread), reason, result_ttl=0)


def _archives(site: Site, goals: Collection[Goal], status: str) -> int:
    sql = "SELECT count(*) FROM memory_agenthistory WHERE thread_id = ANY(%s) AND status = %s"
    row = site.database.execute(sql, [[goal.thread for goal in goals], status]).fetchone()
    return int(row[0]) if row else 0


def _left(site: Site, goals: Collection[Goal]) -> list[Violation]:
    left = _archives(site, goals, "reserved")
    return [Violation(STUCK, "an archive was begun and never finished", str(left))] * bool(left)
