"""F7, CON-01: a message at each barrier of a run's end, on both sides of its final commit (D8) and within it; and F3
there."""

import contextlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from random import Random

import psycopg

from tests.children import Child
from tests.faults.door import Goal, Sent
from tests.faults.rules import LOST, Violation
from tests.faults.site import LEASE, Site
from tests.faults.trial import Tally, is_taken_up, judged
from tests.llm_script import Reply
from tests.processes import wait_until

# The locks at which the witness lets a commit wait: one by which a run ends or lets go, and a message's.
END, ACCEPT = 1, 2

type Barrier = Callable[[Site, Goal], None]


def message_at(barrier: Barrier, site: Site, rounds: int, dice: Random) -> Tally:
    """A second message at that barrier of the first one's run: it is answered, once, without another one."""
    (goal,) = site.goals(1)
    for _ in range(rounds):
        barrier(site, goal)
        site.quiet([goal])
    found = _unanswered(site, goal, 2 * rounds)
    words = barrier.__name__.replace("_", " ")
    return judged(site, f"F7 CON-01 a message {words}", [goal], rounds, also=found)


def before_the_last_commit(site: Site, goal: Goal) -> None:
    with frozen(site, goal, "D8.before"):
        site.door.send(goal, "jot")


def after_the_last_commit(site: Site, goal: Goal) -> None:
    with frozen(site, goal, "D8.after"):
        site.door.send(goal, "jot")


def within_the_last_commit(site: Site, goal: Goal, plan: str = "jot") -> None:
    """The end of a run, or its wait, is written and holds its locks; the message comes to them, and then it is
    committed."""
    with held(site, END) as commit, site.worker(), ThreadPoolExecutor(1) as people:
        site.door.send(goal, plan)
        wait_until(partial(waits, site, "advisory"), 30)
        message = people.submit(site.door.send, goal, "jot")
        wait_until(partial(waits, site, "transactionid"), 30)
        commit()
        message.result()
        site.quiet([goal])


def committed_while_the_end_waits(site: Site, goal: Goal) -> None:
    """The message is written and holds the thread; the run's end comes to it, and then the message is committed."""
    with site.worker(), ThreadPoolExecutor(1) as people, _thinking(site, goal) as go_on:
        with held(site, ACCEPT) as commit:
            message: Future[Sent] = people.submit(site.door.send, goal, "jot")
            wait_until(partial(waits, site, "advisory"), 30)
            go_on()
            wait_until(partial(waits, site, "transactionid"), 30)
            commit()
            message.result()
        site.quiet([goal])


def at_the_end_of_a_lost_lease(site: Site, goal: Goal) -> None:
    """Its worker stands still before the last commit until another one has taken the run over."""
    with frozen(site, goal, "D8.before") as zombie:
        site.door.send(goal, "jot")
        since = time.time()
        with site.worker():
            wait_until(partial(is_taken_up, site, [goal], since), LEASE + 30)
            zombie.send(signal.SIGCONT)
            site.quiet([goal])
            time.sleep(0.5)  # the time to do harm


def before_an_end_that_never_comes(site: Site, goal: Goal) -> None:
    with frozen(site, goal, "D8.before") as doomed:
        site.door.send(goal, "jot")
        doomed.kill()
        with site.worker():
            site.quiet([goal])


def before_an_end_that_nobody_hears_of(site: Site, goal: Goal) -> None:
    """The last commit has queued the next run, and the worker dies before it rings for it."""
    with site.worker(point="D8.after") as doomed, _thinking(site, goal) as go_on:
        site.door.send(goal, "jot")
        go_on()
        assert doomed.is_dead(30), "no run came to its end"
        with site.worker():
            site.quiet([goal])


def before_a_failed_end(site: Site, goal: Goal) -> None:
    with frozen(site, goal, "D8.before", "deny"):
        site.door.send(goal, "jot")


def worker_frozen_before_its_last_write(site: Site, rounds: int, dice: Random, mutant: str = "") -> Tally:
    """F3: SIGSTOP before the last write, another takes over, SIGCONT. The write is the very next thing that the first
    one does, before any of its own checks: only the fence can refuse it."""
    (goal,) = site.goals(1)
    for _ in range(rounds):
        marker, second = f"[{uuid.uuid4()}]", threading.Event()
        site.mind.scripted[marker] = iter([Reply("The first."), Reply("The second one.", hold=second)])
        with site.worker(point="D8.before:1:SIGSTOP", mutant=mutant) as zombie:
            site.door.say(goal, marker, uuid.uuid4())
            wait_until(zombie.is_frozen, 30)
            with site.worker():
                wait_until(lambda: len(site.mind.asked[marker]) == 2, LEASE + 30)  # noqa: B023
                zombie.send(signal.SIGCONT)
                wait_until(lambda: "lease lost" in site.log(zombie) or not site.live([goal]), 30)
                second.set()
                site.quiet([goal])
    return judged(site, "F3 SIGSTOP before the last write", [goal], rounds)


BARRIERS: list[Barrier] = [
    before_the_last_commit,
    within_the_last_commit,
    committed_while_the_end_waits,
    after_the_last_commit,
    at_the_end_of_a_lost_lease,
    before_an_end_that_never_comes,
    before_an_end_that_nobody_hears_of,
    before_a_failed_end,
]


@contextlib.contextmanager
def frozen(site: Site, goal: Goal, point: str, plan: str = "jot") -> Iterator[Child]:
    """While the worker of a message stands still at a point; then it goes on, if it lives."""
    with site.worker(point=f"{point}:1:SIGSTOP") as worker:
        site.door.send(goal, plan)
        wait_until(worker.is_frozen, 30)
        yield worker
        worker.send(signal.SIGCONT)
        site.quiet([goal])


@contextlib.contextmanager
def _thinking(site: Site, goal: Goal) -> Iterator[Callable[[], None]]:
    """While the model of a message is in the middle of its answer; what is yielded lets it go on."""
    marker, half = f"[{uuid.uuid4()}]", threading.Event()
    site.mind.scripted[marker] = iter([Reply("Half of it, and the other half.", hold=half)])
    site.door.say(goal, marker, uuid.uuid4())
    wait_until(lambda: marker in site.mind.asked, 30)
    try:
        yield half.set
    finally:
        half.set()


@contextlib.contextmanager
def held(site: Site, lock: int) -> Iterator[Callable[[], None]]:
    """While certain commits wait; what is yielded lets them go on."""
    with psycopg.connect(site.postgres.url, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(7301, %s)", [lock])

        def commit() -> None:
            holder.execute("SELECT pg_advisory_unlock_all()")

        yield commit


def waits(site: Site, kind: str) -> bool:
    """Whether somebody waits for a lock of this kind."""
    row = site.database.execute("SELECT count(*) FROM pg_locks WHERE locktype = %s AND NOT granted", [kind]).fetchone()
    return bool(row and row[0])


def _unanswered(site: Site, goal: Goal, wanted: int) -> list[Violation]:
    """All messages stand in the history, each before something that the model has answered."""
    sql = """
        SELECT count(*) FROM memory_historyentry said WHERE said.thread_id = %s AND said.role = 'user' AND EXISTS (
          SELECT FROM memory_historyentry a
          WHERE a.thread_id = said.thread_id AND a.role = 'assistant' AND a.seq > said.seq)"""
    row = site.database.execute(sql, [goal.thread]).fetchone()
    return [Violation(LOST, "CON-01 messages with an answer", f"{row} of {wanted}")] * (row != (wanted,))
