"""The worker as a process of its own: RQ's doorbell, leases, stops, shutdown and crashes."""

import os
import signal
import threading
import time

import pytest
from django.core.management import call_command

from agents import connections, services
from agents.engine import bell, presence
from agents.engine.clock import tick
from agents.live.stream import redis_client
from agents.models import ModelCall
from goals.models import Goal
from memory.models import AgentRun, Note, RunStatus, ThreadMessage
from tests.factories import GoalFactory
from tests.llm_script import Reply, Status
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker

NOTE = ("create_note", {"title": "Shoes", "body": "New ones"})


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer) -> Goal:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    connections.connect_model(goal.user, "compatible", "test-model", llm.url)
    return goal


def run_of(goal: Goal) -> AgentRun:
    return AgentRun.objects.select_related("thread").get(thread=goal.thread)


def ended(goal: Goal) -> bool:
    return not AgentRun.objects.live().filter(thread=goal.thread).exists()


def test_a_message_wakes_the_worker_which_answers_it(goal: Goal, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted.")])
    with worker():
        services.send_message(goal.thread, "Note: new shoes")
        wait_until(lambda: ended(goal))
        wait_until(lambda: presence.worker_seen(60))

    assert Note.objects.get().title == "Shoes"
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "Noted."  # type: ignore[union-attr]
    assert not presence.worker_seen(60), "it signs off when it stops"


def test_many_runs_share_one_worker_at_the_same_time(goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    goals: list[Goal] = [GoalFactory(user=goal.user) for _ in range(8)]
    llm.script([Reply(text="Together at last", hold=hold)] * 8)
    with worker():
        for each in goals:
            services.send_message(each.thread, "Hi")
        wait_until(lambda: len(llm.requests) == 8)
        assert not any(ended(each) for each in goals), "all eight are waiting for their model at once"
        hold.set()
        wait_until(lambda: all(ended(each) for each in goals))


def test_stop_reaches_a_run_in_another_process_within_a_second(goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    llm.script([Reply(text="This goes on and on", hold=hold)])
    with worker():
        services.send_message(goal.thread, "Hi")
        wait_until(lambda: len(llm.requests) == 1)
        services.stop_run(run_of(goal))
        wait_until(lambda: ended(goal), 1.5)
        hold.set()
    assert run_of(goal).status == RunStatus.CANCELLED


def test_a_lost_doorbell_is_rung_again(goal: Goal, llm: LLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bell, "ring", lambda run_id: None)
    llm.script([Reply(text="Here I am")])
    services.send_message(goal.thread, "Anybody there?")
    AgentRun.objects.update(created_at="2026-01-01T00:00Z")
    with worker():
        wait_until(lambda: ended(goal))
    assert run_of(goal).status == RunStatus.SUCCEEDED


@pytest.mark.faults
def test_the_run_of_a_killed_worker_goes_on_in_the_next(goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    llm.script([Reply(calls=[NOTE]), Reply(text="Nobody will see this", hold=hold), Reply(text="Noted.")])
    with worker() as first:
        services.send_message(goal.thread, "Note: new shoes")
        wait_until(lambda: len(llm.requests) == 2)
        os.kill(first.pid, signal.SIGKILL)
        hold.set()
    with worker():
        wait_until(lambda: ended(goal), 15)

    run = run_of(goal)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 1)
    assert Note.objects.count() == 1, "what was done is not done again"
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "Noted."  # type: ignore[union-attr]
    assert not llm.violations


@pytest.mark.faults
def test_a_wait_for_the_model_survives_the_death_of_its_worker_and_of_redis(goal: Goal, llm: LLMServer) -> None:
    llm.script([Status(529)] * 3 + [Reply(text="Here I am")])
    quick = {"WAYMARK_RETRY_HELD_SECONDS": "0.05", "WAYMARK_RETRY_FIRST_SECONDS": "3"}
    with worker(**quick) as first:
        services.send_message(goal.thread, "Hi")
        wait_until(lambda: run_of(goal).status == RunStatus.RETRY_WAIT)
        os.kill(first.pid, signal.SIGKILL)
    redis_client().flushall()
    due = run_of(goal).due_at
    with worker(**quick):
        wait_until(lambda: ended(goal), 20)
    run = run_of(goal)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)
    last = ModelCall.objects.filter(run=run).latest("created_at")
    assert due
    assert last.created_at >= due, "not early"
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "Here I am"  # type: ignore[union-attr]
    assert not llm.violations


def test_a_worker_that_is_told_to_stop_hands_its_runs_over(goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    llm.script([Reply(calls=[NOTE], hold=hold), Reply(text="Noted.")])
    with worker() as first:
        services.send_message(goal.thread, "Note: new shoes")
        wait_until(lambda: len(llm.requests) == 1)
        first.terminate()
        time.sleep(1.5)  # the signal has been noticed by then: no blocking call of the worker lasts longer
        hold.set()
        wait_until(lambda: first.poll() is not None, 8)
    assert run_of(goal).status == RunStatus.QUEUED
    with worker():
        wait_until(lambda: ended(goal))
    run = run_of(goal)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)
    assert Note.objects.count() == 1
    assert not llm.violations


def test_the_scheduler_ticks_without_a_word(transactional_db: None) -> None:
    """Nothing is due and nothing is wrong."""
    tick()
    call_command("check")
