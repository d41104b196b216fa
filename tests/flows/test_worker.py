"""The worker as a process of its own: RQ's doorbell, leases, stops, shutdown and crashes."""

import signal
import threading
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone

from agents import services
from agents.engine import bell, presence
from agents.engine.clock import tick
from agents.live.stream import redis_client
from agents.models import ModelCall
from agents.stopping import stop_run
from goals.models import Goal
from memory.locks import TICK_LOCK
from memory.models import AgentRun, Note, RunStatus, ThreadMessage
from tests.factories import GoalFactory, think_with
from tests.llm_script import Hang, Reply, Status
from tests.llm_server import LLMServer
from tests.processes import running, wait_until, worker

pytestmark = pytest.mark.programs

NOTE = ("create_note", {"title": "Shoes", "body": "New ones"})


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer) -> Goal:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    return goal


def run_of(goal: Goal) -> AgentRun:
    return AgentRun.objects.select_related("thread").get(thread=goal.thread)


def ended(goal: Goal) -> bool:
    return not AgentRun.objects.live().filter(thread=goal.thread).exists()


def test_a_message_wakes_the_worker_which_answers_it(goal: Goal, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted.")])
    with running("manage.py", "worker"):
        services.send_message(goal.thread, "Note: new shoes")
        wait_until(lambda: ended(goal))
        wait_until(lambda: presence.workers_alive(60) > 0)

    assert Note.objects.get().title == "Shoes"
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "Noted."  # type: ignore[union-attr]
    assert not presence.workers_alive(60), "it signs off when it stops"


def test_many_runs_share_one_worker_at_the_same_time(goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    goals: list[Goal] = [GoalFactory(user=goal.user) for _ in range(8)]
    llm.script([Reply(text="Together at last", hold=hold)] * 8)
    with worker(WAYMARK_MAX_RUNNING_PER_USER="8"):
        for each in goals:
            services.send_message(each.thread, "Hi")
        wait_until(lambda: len(llm.requests) == 8)
        assert not any(ended(each) for each in goals), "all eight are waiting for their model at once"
        hold.set()
        wait_until(lambda: all(ended(each) for each in goals))


def test_stop_reaches_a_run_in_another_process_at_once(goal: Goal, llm: LLMServer) -> None:
    """And not only with the next renewal of its lease."""
    hold = threading.Event()
    llm.script([Reply(text="This goes on and on", hold=hold)])
    with worker(WAYMARK_RENEW_SECONDS="600", WAYMARK_LEASE_SECONDS="6000"):
        services.send_message(goal.thread, "Hi")
        wait_until(lambda: len(llm.requests) == 1)
        wait_until(lambda: redis_client().pubsub_numsub(f"{settings.REDIS_PREFIX}stop")[0][1] == 1)
        stop_run(run_of(goal))
        wait_until(lambda: ended(goal))
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
        first.kill()
        hold.set()
    with worker():
        wait_until(lambda: ended(goal), 15)

    run = run_of(goal)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 1)
    assert Note.objects.count() == 1, "what was done is not done again"
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "Noted."  # type: ignore[union-attr]
    assert not llm.violations


@pytest.mark.faults
def test_prv_08_c_thoughts_come_back_unchanged_from_the_next_worker(goal: Goal, llm: LLMServer) -> None:
    """The server compares them byte by byte, in the middle of the loop."""
    think_with(goal.user, llm.url, "key-of-the-test", "anthropic")
    thinking = "Plan:  two  spaces\n\n— ok "
    llm.script([Reply("So.", calls=[NOTE], thinking=thinking, redacted="hidden"), Hang(30), Reply(text="Noted.")])
    with worker() as first:
        services.send_message(goal.thread, "Note: new shoes")
        wait_until(lambda: len(llm.requests) == 2)
        first.kill()
    with worker():
        wait_until(lambda: ended(goal), 15)

    assert run_of(goal).status == RunStatus.SUCCEEDED
    first_try, second_try = (request.messages[1] for request in llm.requests[1:])
    assert first_try == second_try
    assert [block["type"] for block in second_try["content"]] == ["thinking", "redacted_thinking", "text", "tool_use"]
    assert not llm.violations


@pytest.mark.faults
def test_a_wait_for_the_model_survives_the_death_of_its_worker_and_of_redis(goal: Goal, llm: LLMServer) -> None:
    llm.script([Status(529)] * 3 + [Reply(text="Here I am")])
    quick = {"WAYMARK_RETRY_HELD_SECONDS": "0.05", "WAYMARK_RETRY_FIRST_SECONDS": "3"}
    with worker(**quick) as first:
        services.send_message(goal.thread, "Hi")
        wait_until(lambda: run_of(goal).status == RunStatus.RETRY_WAIT)
        first.kill()
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
        first.send(signal.SIGTERM)
        time.sleep(1.5)  # the signal has been noticed by then: no blocking call of the worker lasts longer
        hold.set()
        assert first.is_dead(8)
    assert run_of(goal).status == RunStatus.QUEUED
    with worker():
        wait_until(lambda: ended(goal))
    run = run_of(goal)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)
    assert Note.objects.count() == 1
    assert not llm.violations


def test_one_of_the_workers_does_what_is_due_by_the_clock(transactional_db: None) -> None:
    past = Session.objects.create(session_key="past", expire_date=timezone.now() - timedelta(minutes=1))
    with worker(), worker():
        wait_until(lambda: not Session.objects.filter(pk=past.pk).exists(), 20)


def test_who_comes_while_another_ticks_does_nothing(transactional_db: None) -> None:
    past = Session.objects.create(session_key="past", expire_date=timezone.now() - timedelta(minutes=1))
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [TICK_LOCK])
        tick()
    assert Session.objects.filter(pk=past.pk).exists()
    tick()
    assert not Session.objects.filter(pk=past.pk).exists()


def test_a_tick_that_hangs_costs_no_lease_and_delays_no_sweep(goal: Goal, llm: LLMServer) -> None:
    past = Session.objects.create(session_key="past", expire_date=timezone.now() - timedelta(minutes=1))
    hold = threading.Event()
    llm.script([Reply(text="Hello", hold=hold)])
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT 1 FROM django_session WHERE session_key = %s FOR UPDATE", [past.pk])
        with worker():
            services.send_message(goal.thread, "Hi")
            wait_until(lambda: len(llm.requests) == 1, 20)
            wait_until(lambda: _waits_for_a_lock(other))
            time.sleep(3)  # longer than the lease
            assert AgentRun.objects.filter(thread=goal.thread, fence=1).exists()
            hold.set()
            wait_until(lambda: ended(goal))
    run = run_of(goal)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)


def _waits_for_a_lock(other: psycopg.Connection[Any]) -> bool:
    rows = other.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall()
    return bool(rows)
