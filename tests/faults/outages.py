"""F8, F9: Valkey and PostgreSQL go away and come back, and sessions are ended from the other side."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random

from tests.faults.rules import LOST, Violation
from tests.faults.site import AT_ONCE, Site
from tests.faults.trial import Tally, endings, is_taken_up, judged, percentile, statuses, taken_up
from tests.processes import wait_until

# Generous, for machines that do other things too; the figure itself is printed. Seconds.
SLOWEST_ACCEPT, SLOWEST_RETURN = 5.0, 30.0


def valkey_flushed(site: Site, rounds: int, dice: Random) -> Tally:
    """F8: FLUSHALL with doorbells in the queue and runs at work."""
    goals, recoveries = site.goals(AT_ONCE), list[float]()
    for _ in range(rounds):
        for goal in goals[: AT_ONCE // 2]:
            site.door.send(goal, "jot put mail")
        site.redis.flushall()
        flushed = time.time()
        with site.worker():
            for goal in goals[AT_ONCE // 2 :]:
                site.door.send(goal, "jot put~0.2 mail~0.2")
            time.sleep(dice.uniform(0, 0.5))
            site.redis.flushall()
            site.quiet(goals)
        recoveries += taken_up(site, goals, flushed)
    return judged(site, "F8 FLUSHALL", goals, rounds * AT_ONCE, recoveries)


def valkey_killed(site: Site, rounds: int, dice: Random) -> Tally:
    """F8: Valkey is killed while runs are at work; messages are accepted without it; then it comes back empty."""
    goals, recoveries, accepts = site.goals(AT_ONCE), list[float](), list[float]()
    for _ in range(rounds):
        with site.worker():
            for goal in goals:
                site.door.send(goal, "jot put~0.3 mail~0.3 jot")
            time.sleep(dice.uniform(0, 0.5))
            site.end(site.valkey, signal.SIGKILL)
            accepts += [site.door.send(goal, "jot").seconds for goal in goals for _ in range(5)]
            assert site.pages_answer(), "a page needs Valkey"
            site.spawn(site.valkey)
            back = time.time()
            site.quiet(goals)
        recoveries += taken_up(site, goals, back)
    remark = f"accept without it p95 {percentile(accepts, 95) * 1000:.0f} ms"
    slow = [Violation(LOST, "accept is slow without Valkey", remark)] * (percentile(accepts, 95) > SLOWEST_ACCEPT)
    slow += [Violation(LOST, "work is taken up late", "")] * (percentile(recoveries or [0], 95) > SLOWEST_RETURN)
    return judged(site, "F8 kill -9 of Valkey", goals, rounds * AT_ONCE, recoveries, remark, slow)


def viewers_without_valkey(site: Site, rounds: int, dice: Random) -> Tally:
    """F8: what has happened can be read while the live wire is down, so pages that poll go on."""
    goals, found = site.goals(rounds), list[Violation]()
    for goal in goals:
        with site.worker():
            began = time.time()
            site.door.send(goal, "jot end@0.3")
            wait_until(partial(is_taken_up, site, [goal], began), 30)
            time.sleep(dice.uniform(0, 0.3))
            site.end(site.valkey, signal.SIGKILL)
            site.quiet([goal], 20)
            shown = site.door.get(f"goals/{goal.id}/messages")
            if not any(each["source"] == "agent" and each["message_type"] == "text" for each in shown["results"]):
                found.append(Violation(LOST, "the answer is not shown while Valkey is away", goal.id))
            site.spawn(site.valkey)
            site.quiet([goal])
    return judged(site, "F8 pages without Valkey", goals, rounds, also=found)


def postgres_restarted(how: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F9: PostgreSQL is restarted (fast, immediate) during 40 runs, while messages come in: more than may wait at once,
    so some are refused and come back."""
    number = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how]
    goals, recoveries = site.goals(40), list[float]()
    for _ in range(rounds):
        with site.worker(), site.worker(), ThreadPoolExecutor(len(goals)) as people:
            sent = [people.submit(site.door.send, goal, "jot@0.2 put~0.2+jot mail~0.2 peek jot") for goal in goals]
            time.sleep(dice.uniform(0.2, 1.5))
            site.end(site.postgres, number)
            site.spawn(site.postgres)
            back = time.time()
            for each in sent:
                each.result()
            site.quiet(goals, 90)
        recoveries += taken_up(site, goals, back)
    return judged(site, f"F9 PostgreSQL restarted, {how}", goals, rounds * len(goals), recoveries, endings(site, goals))


def sessions_ended(site: Site, rounds: int, dice: Random) -> Tally:
    """F9, STO-04: every session of the worker is ended during a long model call; then it works on as before."""
    goals = site.goals(AT_ONCE)
    with site.worker():
        for _ in range(rounds):
            for goal in goals:
                site.door.send(goal, "jot mail end@1.5")
            time.sleep(dice.uniform(0.3, 1))
            site.database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'worker%'"
            )
            site.quiet(goals)
    ended = endings(site, goals)
    wrong = [Violation(LOST, "STO-04 an answer was not saved", ended)] * (set(statuses(site, goals)) != {"succeeded"})
    return judged(site, "F9 STO-04 sessions ended", goals, rounds * AT_ONCE, remark=ended, also=wrong)
