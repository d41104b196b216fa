"""Stopping, while something else is going on: what was sent off is called back, whatever comes first."""

import threading
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction

from agents import services
from agents.delegation import delegate
from agents.engine import journal
from agents.models import AgentTask, TaskStatus
from agents.stopping import delete_thread, stop_run
from goals.models import Goal
from memory import pool
from memory.models import AgentRun, RunStatus, Thread, Trigger
from tests.agents.engine.test_delegation import said, sends_off, task, work
from tests.agents.engine.test_orchestrator import run_of, wait_until, work_in_thread
from tests.agents.engine.test_recovery import in_thread
from tests.factories import AgentTaskFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer

WAITING = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())"


def waits_for_a_lock() -> bool:
    return bool(pool.execute(WAITING, {})[0][0])


@pytest.mark.parametrize("first", ["task", "stop"])
def test_a_task_that_is_sent_off_while_its_run_is_stopped_does_not_go_on(
    goal: Goal, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(*args: Any, **more: Any) -> AgentTask:
        made = delegate(*args, **more) if first == "task" else None
        begun.set()
        go_on.wait(20)
        return made or delegate(*args, **more)

    monkeypatch.setattr("agents.tools.delegate", slow)
    llm.script([Reply(calls=[task("shoes")]), Reply(text="They are on it.")])
    run = run_of(services.send_message(goal.thread, "Go"))
    worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
    worker.start()
    assert begun.wait(20)
    stop = in_thread(stop_run, run)
    stop.start()
    wait_until(lambda: not stop.is_alive() or waits_for_a_lock(), 20)
    go_on.set()
    for each in (stop, worker):
        each.join(20)
    work(rung)
    assert not AgentTask.objects.exclude(status=TaskStatus.CANCELLED).exists()
    assert not AgentRun.objects.filter(trigger=Trigger.REPORT).exists(), "who was stopped is not woken"
    assert not AgentRun.objects.live().exists()


def test_a_stop_that_broke_off_half_way_is_finished_by_the_next(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    run = sends_off(goal, llm, rung, task("shoes"), task("socks"))
    AgentRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
    AgentTask.objects.filter(title="socks").update(status=TaskStatus.CANCELLED)
    journal.stop(run.pk)
    stop_run(run)
    work(rung)
    assert {*AgentTask.objects.values_list("status", flat=True)} == {TaskStatus.CANCELLED}
    assert {*AgentRun.objects.filter(trigger=Trigger.TASK).values_list("status", flat=True)} == {RunStatus.CANCELLED}
    assert "Called back: “shoes”." in said(goal)


def test_a_run_that_is_over_keeps_its_tasks_when_it_is_stopped_too_late(
    goal: Goal, llm: LLMServer, rung: list[UUID]
) -> None:
    stop_run(sends_off(goal, llm, rung, task("shoes")))
    assert AgentTask.objects.get().status == TaskStatus.ACTIVE


def test_a_family_is_locked_like_a_report_locks_it_children_first(goal: Goal) -> None:
    """Else a deletion and the end of a task wait for each other, and PostgreSQL kills one of them."""
    child = AgentTaskFactory.create(parent=goal.thread).thread
    problems: list[Exception] = []

    def delete() -> None:
        try:
            delete_thread(goal.thread)
        except DatabaseError as problem:
            problems.append(problem)

    deletion = in_thread(delete)
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=child.pk)
        deletion.start()
        wait_until(waits_for_a_lock, 20)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '500ms'")
        Thread.objects.select_for_update(no_key=True).get(pk=goal.thread.pk)
    deletion.join(20)
    assert not problems
    assert not Thread.objects.filter(pk__in=(child.pk, goal.thread.pk)).exists()
