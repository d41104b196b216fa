"""F1 at D4, F11: calls that need a person's word. People decide twice, differently and late, and everything dies."""

import contextlib
import time
import uuid
from collections.abc import Callable, Collection
from functools import partial
from random import Random

from tests.faults.door import Door, Goal, Question
from tests.faults.ends import frozen, within_the_last_commit
from tests.faults.races import at_once
from tests.faults.rules import LOST, REPEATED, Violation
from tests.faults.site import Site
from tests.faults.trial import Tally, endings, judged, taken_up
from tests.processes import wait_until

# Two replies with a call that waits; beside the first one is another that acts at once.
PLAN = "wire+mail jot wire"
# The request is committed with the reply, the run lets go (D4), and the call is started when it is approved.
POINTS = ["D5.after", "D4.before", "D4.after", "start.before", "start.after"]
CLIENTS, TALKS = 4, 2


def worker_killed_at(point: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F1: kill -9 of the worker around what is asked, waited for, and started, while somebody approves."""
    goals, recoveries = site.goals(TALKS), list[float]()
    for _ in range(rounds):
        with site.worker(point=f"{point}:{dice.randint(1, TALKS)}") as victim:
            for goal in goals:
                site.door.send(goal, PLAN)
            wait_until(lambda: _approve_all(site.door) or victim.is_dead(), 60)
            died = time.time()
            with site.worker():
                approved_until_quiet(site, goals)
            recoveries += taken_up(site, goals, died)
    return judged(site, f"F1 kill -9 at {point}, approval", goals, rounds * TALKS, recoveries)


def web_killed_at(point: str, site: Site, rounds: int, dice: Random) -> Tally:
    """F1: kill -9 of the web process around a decision (D4); the person decides the same again elsewhere."""
    goals = site.goals(TALKS)
    with site.worker():
        for _ in range(rounds):
            web, port = site.start("web", point=f"{point}:{dice.randint(1, TALKS)}")
            doomed = site.second_door(port)
            for goal in goals:
                site.door.send(goal, PLAN)
            wait_until(lambda: _approve_all(doomed) or web.is_dead(), 60)  # noqa: B023
            approved_until_quiet(site, goals)
    return judged(site, f"F1 kill -9 at {point}", goals, rounds * TALKS)


def approved_at_once(site: Site, rounds: int, dice: Random) -> Tally:
    """F11, CON-05 a: one call is approved by many at the same instant, through two web processes."""
    goals, found, calls = site.goals(rounds), list[Violation](), list[str]()
    web, port = site.start("web")
    doors = [site.door, site.second_door(port)] * CLIENTS
    with site.worker():
        for goal in goals:
            question = _asked(site, goal)
            answers = at_once([partial(door.decide, question, "approve") for door in doors])
            if set(answers) != {200}:
                found.append(Violation(REPEATED, "CON-05 the same decision was refused", str(answers)))
            calls.append(question.call)
        site.quiet(goals)
    web.kill()
    executed = sum(site.sink.times("wire")[call] for call in calls)
    if executed != len(calls):
        found.append(Violation(REPEATED, "CON-05 executions of approved calls", f"{executed} of {len(calls)}"))
    return judged(site, f"F11 approved {len(doors)} times at once", goals, rounds, also=found)


def decided_at_once(site: Site, rounds: int, dice: Random) -> Tally:
    """F11, CON-05 b: approve against reject, expiry and stop, each alone and all together, at about the same instant.
    One decision counts, and whoever comes second is told."""
    goals, found = site.goals(rounds), list[Violation]()
    contests = ([_reject], [_expire], [_stop], [_reject, _expire, _stop])
    web, port = site.start("web")
    doors = [site.door, site.second_door(port)] * (CLIENTS // 2)
    with site.worker(), site.worker():
        for number, goal in enumerate(goals):
            question, run = _asked(site, goal), _run_of(site, goal)
            approvals = [partial(_after, dice.uniform(0, 0.02), partial(d.decide, question, "approve")) for d in doors]
            against = contests[number % len(contests)]
            others = [partial(_after, dice.uniform(0, 0.02), partial(each, site, question, run)) for each in against]
            answers = at_once([*approvals, *others])
            won = {"approved"} if 200 in answers[: len(approvals)] else set()
            won |= {"rejected"} if _reject in against and answers[len(approvals)] == 200 else set()
            found += _contradictions(site, question, won)
        site.quiet(goals)
    web.kill()
    return judged(site, "F11 approve, reject, expire, stop", goals, rounds, remark=endings(site, goals), also=found)


def message_as_a_run_waits(site: Site, rounds: int, dice: Random) -> Tally:
    """F7 at D4: a message within the commit by which a run lets go to wait, before and after it. It wakes the run,
    which is answered without the call; what was proposed is then rejected."""
    (goal,), found = site.goals(1), list[Violation]()
    for number in range(rounds):
        come = (_message_within, _message_before, _message_after)[number % 3]
        come(site, goal)
        if site.live([goal]):
            found.append(Violation(LOST, "I1 a message did not wake the run that waits", come.__name__))
        with site.worker():
            for question in site.door.questions():
                site.door.decide(question, "reject")
            site.quiet([goal])
    return judged(site, "F7 a message as a run waits", [goal], rounds, also=found)


def _message_within(site: Site, goal: Goal) -> None:
    within_the_last_commit(site, goal, "wire jot")


def _message_before(site: Site, goal: Goal) -> None:
    with frozen(site, goal, "D4.before", "wire jot"):
        site.door.send(goal, "jot")


def _message_after(site: Site, goal: Goal) -> None:
    with frozen(site, goal, "D4.after", "wire jot"):
        site.door.send(goal, "jot")


def _approve_all(door: Door) -> bool:
    """Approve whatever waits, as far as somebody answers, and take a breath. False."""
    with contextlib.suppress(OSError):
        for question in door.questions():
            door.decide(question, "approve")
    time.sleep(0.1)
    return False


def approved_until_quiet(site: Site, goals: Collection[Goal], seconds: float = 60) -> None:
    """Approve whatever these goals wait for until all of it is over, for that long at most."""
    site.quiet(goals, seconds, meanwhile=partial(_approve_all, site.door))


def _asked(site: Site, goal: Goal) -> Question:
    """Let a run come to a call that waits."""
    before = {question.call for question in site.door.questions()}
    site.door.send(goal, "wire jot")
    found: list[Question] = []

    def is_there() -> bool:
        found[:] = [question for question in site.door.questions() if question.call not in before]
        return bool(found)

    wait_until(is_there, 30)
    return found[0]


def _run_of(site: Site, goal: Goal) -> str:
    row = site.database.execute("SELECT live_run FROM memory_thread WHERE id = %s", [goal.thread]).fetchone()
    assert row
    return str(row[0])


def _after[T](seconds: float, call: Callable[[], T]) -> T:
    time.sleep(seconds)
    return call()


def _reject(site: Site, question: Question, run: str) -> int:
    return site.door.decide(question, "reject")


def _expire(site: Site, question: Question, run: str) -> int:
    """Its time is over now, for the workers' sweep to find."""
    sql = "UPDATE tools_approval SET expires_at = clock_timestamp() WHERE action_id = %s AND state = 'requested'"
    site.database.execute(sql, [question.call])
    return 0


def _stop(site: Site, question: Question, run: str) -> int:
    site.door.stop(run)
    return 0


def _contradictions(site: Site, question: Question, won: set[str]) -> list[Violation]:
    """What people were told against what is on record."""
    sql = "SELECT state FROM tools_approval WHERE action_id = %s"
    row = site.database.execute(sql, [uuid.UUID(question.call)]).fetchone()
    state = row[0] if row else "gone"
    wrong = len(won) > 1 or (won and won != {state}) or (not won and state in ("approved", "rejected"))
    return [Violation(REPEATED, f"CON-05 told {sorted(won)}, recorded {state}", question.call)] * bool(wrong)
