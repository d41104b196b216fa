"""Archiving by real worker processes: rung for, killed in the middle, taken up again."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from agents import services
from agents.engine.clock import tick
from agents.live.stream import redis_client
from goals.models import Goal
from memory import transcript
from memory.models import AgentHistory, AgentRun, HistoryEntry, Thread
from tests.factories import GoalFactory, think_with
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker
from tools.recorded import recorded

pytestmark = pytest.mark.programs

PATIENT = {"WAYMARK_SUMMARY_SECONDS": "30"}


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer) -> Goal:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    return goal


def asked(llm: LLMServer) -> list[Request]:
    return [request for request in llm.requests if str(request.messages[0]["content"]).startswith("You sum up")]


def quiet(goal: Goal) -> Callable[[], bool]:
    return lambda: not AgentRun.objects.live().filter(thread=goal.thread).exists()


def live(goal: Goal) -> str:
    thread = Thread.objects.get(pk=goal.thread_id)
    return str(transcript.load(thread.pk, thread.from_seq, recorded))


def test_an_idle_session_is_archived_by_the_clock_and_a_worker(goal: Goal, llm: LLMServer) -> None:
    llm.script([Reply(text="They said hello.")], lambda request: bool(asked(llm)))
    with worker(**PATIENT):
        services.send_message(goal.thread, "ping")
        wait_until(quiet(goal), 60)
        tick()
        past = timezone.now() - timedelta(minutes=31)
        assert not AgentHistory.objects.exists(), "not idle for long enough"
        Thread.objects.filter(pk=goal.thread_id).update(active_at=past)
        HistoryEntry.objects.update(created_at=past)
        tick()
        wait_until(lambda: AgentHistory.objects.done().exists(), 60)
    assert AgentHistory.objects.get().summary == "They said hello."
    assert "ping" not in live(goal)


@pytest.mark.faults
def test_con_03_f_kill_9_in_the_middle_of_a_summary_leaves_no_half_state(goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    llm.script(
        [Reply(text="Never read", hold=hold), Reply(text="They said hello.")],
        lambda request: str(request.messages[0]["content"]).startswith("You sum up"),
    )
    llm.script([Reply(text="I will.")])
    with worker(**PATIENT) as process:
        services.send_message(goal.thread, "ping")
        wait_until(quiet(goal), 60)
        services.archive_now(goal.thread)
        wait_until(lambda: len(asked(llm)) == 1, 60)
        services.send_message(goal.thread, "remember 4711")
        wait_until(quiet(goal), 60)
        process.kill()
    hold.set()
    session = AgentHistory.objects.get()
    assert (session.status, session.entries, session.summary) == ("reserved", [], "")
    assert "ping" in live(goal)

    AgentHistory.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    with worker(**PATIENT):
        tick()
        wait_until(lambda: AgentHistory.objects.done().exists(), 60)
    session.refresh_from_db()
    assert (session.summary, session.message_count) == ("They said hello.", 2)
    assert "remember 4711" in live(goal)
    assert "ping" not in live(goal)
    assert len(asked(llm)) == 2
