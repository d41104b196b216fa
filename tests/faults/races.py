"""F6, F7: many hands reach for the same thing at once."""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Any

import psycopg
from rq import Queue

from tests.faults.door import Goal
from tests.faults.rules import LOST, REPEATED, Violation
from tests.faults.site import Site
from tests.faults.trial import Tally, judged

RACERS, BELLS, POSTS, PAIRS = 8, 50, 20, 10


def workers_race(site: Site, rounds: int, dice: Random) -> Tally:
    """F6: eight workers, fifty doorbells, one run."""
    goals, found = site.goals(rounds), list[Violation]()
    queue = Queue("default", connection=site.redis)
    with ExitStack() as stack:
        for _ in range(RACERS):
            stack.enter_context(site.worker())
        for goal in goals:
            run = site.door.send(goal, "jot mail").run
            for _ in range(BELLS):
                queue.enqueue("agents.engine.jobs.run", run, result_ttl=0)
        site.quiet(goals)
        time.sleep(0.5)
    # A worker that the machine let stand still for longer than a lease is rightly relieved: the witness sees to that.
    sql = """
        SELECT run_id, count(*) FROM faults.claims JOIN memory_agentrun r ON r.id = run_id
        WHERE thread_id = ANY(%s) AND NOT takeover GROUP BY 1 HAVING count(*) <> 1"""
    for run, claims in _rows(site, sql, goals):
        found.append(Violation(REPEATED, f"I3 claimed {claims} times", str(run)))
    return judged(site, "F6 8 workers, 50 bells", goals, rounds, also=found)


def same_message_at_once(site: Site, rounds: int, dice: Random) -> Tally:
    """F7: one client id, posted twenty times at the same moment."""
    goals, found = site.goals(rounds), list[Violation]()
    with site.worker():
        for goal in goals:
            client = uuid.uuid4()
            sent = at_once([partial(site.door.send, goal, "jot", client)] * POSTS)
            kinds = len({each.message for each in sent}), len({each.run for each in sent}), sum(s.created for s in sent)
            if kinds != (1, 1, 1):
                found.append(Violation(REPEATED, f"I2 messages, runs, 202s: {kinds}", str(client)))
        site.quiet(goals)
    return judged(site, "F7 one client id 20 times", goals, rounds, also=found)


def message_around_the_end(site: Site, rounds: int, dice: Random) -> Tally:
    """F7, CON-01: a second message around the end of the run of the first. When it still joins that run the next one
    comes later, else sooner, so that the moments crowd where a wake-up could be lost."""
    goals, joined = site.goals(min(rounds, PAIRS)), list[bool]()

    def talk(goal: Goal) -> None:
        pause = 0.1
        for _ in range(rounds // len(goals)):
            first = site.door.send(goal, "end")
            time.sleep(pause)
            second = site.door.send(goal, "end")
            joined.append(first.run == second.run)
            pause = max(0.0, pause + dice.uniform(0, 0.04) * (1 if joined[-1] else -1))
            site.quiet([goal])

    with site.worker():
        at_once([partial(talk, goal) for goal in goals])
        site.quiet(goals)
    remark = f"{sum(joined)} of {len(joined)} joined the first run"
    return judged(site, "F7 CON-01 a message around the end", goals, len(joined), remark=remark)


def message_at_every_point(site: Site, rounds: int, dice: Random) -> Tally:
    """F7: messages at random moments of a longer run."""
    goals = site.goals(4)
    with site.worker():
        for _ in range(rounds):
            for goal in goals:
                site.door.send(goal, "put~0.1 jot mail~0.1 jot@0.1 end@0.1")
            for _ in range(6):
                time.sleep(dice.uniform(0, 0.15))
                site.door.send(dice.choice(goals), "jot")
            site.quiet(goals)
    return judged(site, "F7 messages during a run", goals, 6 * rounds)


def two_messages_at_once(site: Site, rounds: int, dice: Random) -> Tally:
    """F7, CON-02: two messages at the same instant, through two web processes to two workers."""
    goals = site.goals(rounds)
    second, port = site.start("web")
    other = site.second_door(port)
    with site.worker(), site.worker():
        for goal in goals:
            at_once([partial(site.door.send, goal, "jot"), partial(other.send, goal, "jot")])
        site.quiet(goals)
    second.kill()
    return judged(site, "F7 CON-02 two messages at once", goals, rounds)


def bell_before_the_row(site: Site, rounds: int, dice: Random) -> Tally:
    """F7, CON-02 c, d: the doorbell is heard although the run is not committed, or never will be."""
    goals, queue, found = site.goals(rounds), Queue("default", connection=site.redis), list[Violation]()
    with site.worker() as worker:
        for number, goal in enumerate(goals):
            run = uuid.uuid4()
            with psycopg.connect(site.postgres.url) as slow:
                slow.execute("UPDATE memory_thread SET live_run = %s WHERE id = %s", [run, goal.thread])
                slow.execute(
                    "INSERT INTO memory_agentrun (id, thread_id, status, trigger) VALUES (%s, %s, 'queued', 'retry')",
                    [run, goal.thread],
                )
                queue.enqueue("agents.engine.jobs.run", str(run), result_ttl=0)
                time.sleep(0.3)
                slow.rollback() if number % 2 else slow.commit()
            site.door.send(goal, "jot")
        site.quiet(goals)
        if worker.is_dead():
            found.append(Violation(LOST, "the worker died of it", worker.name))
    return judged(site, "F7 CON-02 a bell before its row", goals, rounds, also=found)


def at_once[T](calls: Sequence[Callable[[], T]]) -> list[T]:
    """Do all of it, begun at the same instant; their results in order."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        gate.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def _rows(site: Site, sql: str, goals: Sequence[Goal]) -> list[tuple[Any, ...]]:
    return site.database.execute(sql, [[goal.thread for goal in goals]]).fetchall()
