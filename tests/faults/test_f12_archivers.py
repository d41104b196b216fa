"""F12: eight archivers, a writer and kill -9, on the same sessions (docs/reliability.md)."""

import contextlib
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.utils import timezone

from agents import connections, services
from agents.engine import archiving
from agents.models import ModelCall
from goals.models import Goal
from memory.models import AgentHistory, AgentRun, ArchiveReason, HistoryEntry, Thread, ThreadMessage
from tests.factories import GoalFactory
from tests.llm_script import Reply, Request, Step
from tests.llm_server import LLMServer
from tests.processes import running, wait_until, worker

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]

SEED = 4711
SESSIONS, ARCHIVERS, KILLED, ROUNDS = 4, 8, 4, 8
QUICK = {"WAYMARK_SUMMARY_SECONDS": "4", "WAYMARK_SUMMARY_TRIES": "100", "WAYMARK_LOG_LEVEL": "ERROR"}

# The archivers leave little time to the worker: its leases are not what is tested here.
STEADY = {"WAYMARK_LEASE_SECONDS": "20", "WAYMARK_RENEW_SECONDS": "1"}

ARCHIVER = """
import os, random, time
from pathlib import Path
from uuid import UUID
from agents.engine.archiving import archive_session
from memory.models import ArchiveReason
folder = Path({folder!r})
(folder / f"ready{{os.getpid()}}").touch()
while not (folder / "over").exists():
    reason = random.choice([ArchiveReason.IDLE, ArchiveReason.LONG])
    archive_session(UUID(random.choice({threads!r})), reason, at_once=True)
    time.sleep(random.random() / 3)
"""


def answer(request: Request) -> Step:
    """A model that takes its time with summaries, and now and then gives none."""
    if not str(request.messages[0]["content"]).startswith("You sum up"):
        return Reply(text="I will remember.")
    if random.random() < 0.1:
        return Reply(text="")
    return Reply(text="They talked.", first_token=random.choice([0.05, 0.1, 0.5]))


@contextlib.contextmanager
def archivers(goals: list[Goal], folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that archive until there is a file `over` in the folder."""
    code = ARCHIVER.format(folder=str(folder), threads=[str(goal.thread_id) for goal in goals])
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(running("manage.py", "shell", "-c", code, **QUICK)) for _ in range(ARCHIVERS)]
        wait_until(lambda: len(list(folder.glob("ready*"))) == ARCHIVERS, 120)
        yield made


def write(goals: list[Goal], victims: list[subprocess.Popen[bytes]]) -> None:
    """Say something in every session, again and again, and kill an archiver now and then; the others go on."""
    for number in range(ROUNDS):
        before = AgentHistory.objects.done().count()
        for goal in goals:
            services.send_message(goal.thread, f"remember {number}")
            time.sleep(random.random() / 4)
        wait_until(lambda: not AgentRun.objects.live().exists(), 120)
        time.sleep(random.random() * 2)
        if number % 2 and victims:
            victims.pop().kill()
            wait_until(partial(more_than, before), 60)


def more_than(archives: int) -> bool:
    return AgentHistory.objects.done().count() > archives


def assert_nothing_fell_between(goal: Goal) -> None:
    thread = Thread.objects.get(pk=goal.thread_id)
    sessions = list(AgentHistory.objects.done().filter(thread=thread).order_by("generation"))
    rows = {row.seq: row.blocks for row in HistoryEntry.objects.filter(thread=thread)}
    assert [session.generation for session in sessions] == list(range(thread.generation))
    following = 1
    for session in sessions:
        assert session.first_seq == following
        assert [entry["seq"] for entry in session.entries] == list(range(following, session.last_seq + 1))
        assert all(entry["blocks"] == rows[entry["seq"]] for entry in session.entries)
        assert session.entries[0]["role"] == "user", "cut between turns"
        following = session.last_seq + 1
    assert thread.from_seq == following
    said = Counter(re.findall(r"remember \d+", str(list(rows.values()))))
    assert said == {f"remember {number}": 1 for number in range(ROUNDS)}


def test_f12_archivers_writer_and_kill_9(llm: LLMServer, tmp_path: Path) -> None:
    random.seed(SEED)
    llm.script([answer] * 2_000)
    goals: list[Goal] = [GoalFactory() for _ in range(SESSIONS)]
    for goal in goals:
        connections.connect_model(goal.user, "compatible", "test-model", llm.url, "key")
    with worker(**QUICK, **STEADY), archivers(goals, tmp_path) as all_of_them:
        victims = all_of_them[:KILLED]
        write(goals, [*victims])
        wait_until(lambda: not AgentRun.objects.live().exists(), 60)
        (tmp_path / "over").touch()
        for process in all_of_them:
            process.wait(60)
        wait_until(lambda: not ThreadMessage.objects.filter(processed=False).exists(), 60)

    for goal in goals:  # what the dead have left is taken up
        AgentHistory.objects.exclude(status="done").update(due_at=timezone.now() - timedelta(seconds=1))
        archiving.archive_session(goal.thread_id, ArchiveReason.IDLE)
    killed = sum(process.returncode == -9 for process in all_of_them)
    archives = AgentHistory.objects.done().count()
    paid = ModelCall.objects.filter(run=None, status="done").count()
    print(f"\nF12 seed {SEED}: {archives} archives, {paid} summaries paid, {killed} archivers killed")
    assert killed == KILLED
    assert [process.returncode for process in all_of_them[KILLED:]] == [0] * (ARCHIVERS - KILLED), (
        "no deadlock, no error"
    )
    assert archives >= KILLED
    for goal in goals:
        assert_nothing_fell_between(goal)
    assert not llm.violations
