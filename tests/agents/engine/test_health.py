"""The health monitor: everything that is out of order is found, put right once, and reported."""

import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import django_rq
import psycopg
import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings
from redis import RedisError

from agents import services
from agents.engine import bell, clock, jobs, presence, sweeper
from agents.engine.health import monitor
from agents.live.stream import redis_client
from agents.models import AgentTask, HealthReport, TaskStatus
from goals.models import Goal, GoalStatus
from memory.ids import new_id
from memory.locks import HEALTH_LOCK
from memory.models import LIVE, AgentRun, Note, RunStatus, Source, Thread, ThreadMessage, Trigger
from memory.secrets import seal
from tests.factories import AgentRunFactory, AgentTaskFactory, GoalFactory, ModelCallFactory, ModelConnectionFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]


@pytest.fixture(autouse=True)
def no_files_of_other_tests(tmp_path: Path, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    settings.WAYMARK_DISK_LOW = 0  # however little this machine has


@pytest.fixture(autouse=True)
def a_worker_and_no_bells_of_other_tests() -> None:
    redis_client().flushdb()
    presence.mark_alive()


def ago(**span: float) -> Any:
    return timezone.now() - timedelta(**span)


def health(*arguments: str) -> str:
    out = StringIO()
    call_command("health", *arguments, stdout=out)
    return out.getvalue()


def unwell() -> str:
    """What the command says is not well."""
    with pytest.raises(CommandError) as caught:
        health()
    return str(caught.value)


def found(check: str) -> int:
    """What a check finds now, with nothing changed."""
    return {report.name: report.found for report in monitor.examine(fix=False)}[check]


def all_is_well() -> bool:
    return all(report.is_well and not report.found for report in monitor.examine(fix=False))


def live_run(thread: Thread, **fields: Any) -> AgentRun:
    run: AgentRun = AgentRunFactory(thread=thread, **fields)
    AgentRun.objects.filter(pk=run.pk).update(**fields)
    Thread.objects.filter(pk=thread.pk).update(live_run=run.pk)
    return run


def watched(**span: float) -> None:
    """The monitor has been there for so long."""
    minutes = range(int(timedelta(**span).total_seconds()) // 60, -1, -5)
    HealthReport.objects.bulk_create(HealthReport(name="stuck_runs", at=ago(minutes=each)) for each in minutes)


def work(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def test_nothing_is_found_where_all_is_well(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Hello")])
    say("Hi")
    assert all_is_well()
    assert "0 found" in health()


@pytest.mark.parametrize(
    "state",
    [
        {"status": RunStatus.RUNNING},
        {"status": RunStatus.RUNNING, "lease_token": new_id(), "lease_until": timezone.now() + timedelta(days=1)},
    ],
    ids=["a lease without an end", "a lease from a wrong clock"],
)
def test_a_stuck_run_is_taken_up_again(goal: Goal, rung: list[UUID], llm: LLMServer, state: dict[str, Any]) -> None:
    llm.script([Reply(text="At last")])
    services.send_message(goal.thread, "Hi")
    rung.clear()
    AgentRun.objects.update(**state)
    assert found("stuck_runs") == 1
    health("--fix")
    work(rung)
    assert AgentRun.objects.get().status == RunStatus.SUCCEEDED
    assert all_is_well()


def test_a_run_that_waits_for_no_certain_time_is_found_by_the_sweep(goal: Goal, rung: list[UUID]) -> None:
    run = live_run(goal.thread, status=RunStatus.RETRY_WAIT)
    assert found("stuck_runs") == 0
    sweeper.sweep()
    assert rung == [run.pk]


def test_a_holder_that_hangs_loses_its_run_and_one_that_works_does_not(goal: Goal, rung: list[UUID]) -> None:
    held = {"status": RunStatus.RUNNING, "lease_until": timezone.now() + timedelta(seconds=20)}
    token = new_id()
    run = live_run(goal.thread, started_at=ago(hours=1), created_at=ago(hours=1), lease_token=token, **held)
    call = ModelCallFactory.create(run=run)
    assert found("stuck_runs") == 0, "its model was called a moment ago"
    type(call).objects.update(created_at=ago(hours=1))
    monitor.examine(fix=True)
    run.refresh_from_db()
    assert run.lease_token != token, "neither a write nor a renewal of the holder counts any more"
    assert rung == [run.pk]


def test_a_goal_at_work_without_a_sign_for_hours_waits_for_its_user(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    services.send_message(goal.thread, "Hi")
    rung.clear()
    assert found("stale_goals") == 0
    AgentRun.objects.update(created_at=ago(hours=7))
    assert found("stale_goals") == 0, "nobody watched: the machine may have been off"
    watched(hours=7)
    HealthReport.objects.filter(at__range=(ago(hours=3), ago(hours=2))).delete()
    assert found("stale_goals") == 0, "there was a break"
    watched(hours=7)
    monitor.examine(fix=True)
    goal = Goal.objects.get()
    assert goal.status == GoalStatus.WAITING
    error = ThreadMessage.objects.get(source=Source.ERROR)
    assert "no worker" in error.content
    assert all_is_well(), "who was told is not answered behind their back"

    llm.script([Reply(text="Here I am")])
    services.retry(error)
    work(rung)
    assert ThreadMessage.objects.filter(source=Source.AGENT).get().content == "Here I am"
    assert not ThreadMessage.objects.filter(processed=False).exists()


def test_a_run_that_waits_for_a_person_is_never_stale(goal: Goal) -> None:
    live_run(goal.thread, status=RunStatus.WAITING_APPROVAL, created_at=ago(days=3))
    assert all_is_well()


def test_paused_tasks_go_on_when_ready(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    task = AgentTaskFactory.create(parent=goal.thread, status=TaskStatus.PAUSED, paused_at=ago(hours=1))
    later = AgentTaskFactory.create(
        parent=goal.thread, status=TaskStatus.PAUSED, paused_at=ago(hours=1), resume_at=ago(hours=-1)
    )
    assert found("ready_tasks") == 0, "nobody said when"
    AgentTask.objects.filter(pk=task.pk).update(resume_at=ago(seconds=1))
    health("--fix")
    task.refresh_from_db()
    later.refresh_from_db()
    assert (task.status, task.resume_at, later.status) == (TaskStatus.ACTIVE, None, TaskStatus.PAUSED)
    assert rung == [AgentRun.objects.get(thread=task.thread).pk]
    assert AgentRun.objects.get(thread=task.thread).trigger == Trigger.RETRY


def test_tasks_paused_for_a_day_are_given_up(goal: Goal) -> None:
    old = AgentTaskFactory.create(parent=goal.thread, status=TaskStatus.PAUSED, paused_at=ago(hours=25))
    new = AgentTaskFactory.create(parent=goal.thread, status=TaskStatus.PAUSED, paused_at=ago(hours=23))
    waits = live_run(old.thread, status=RunStatus.RETRY_WAIT, due_at=ago(hours=-1))
    monitor.examine(fix=True)
    old.refresh_from_db()
    new.refresh_from_db()
    waits.refresh_from_db()
    assert (old.status, new.status) == (TaskStatus.CANCELLED, TaskStatus.PAUSED)
    assert "24 hours" in old.result
    assert waits.status == RunStatus.CANCELLING


def test_a_task_nobody_works_on_is_completed_and_reported(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Reply(text="I see")])
    task = AgentTaskFactory.create(parent=goal.thread, title="Look up shoes")
    AgentTask.objects.update(created_at=ago(hours=3))
    run = live_run(task.thread, status=RunStatus.QUEUED, created_at=ago(hours=1))
    watched(hours=3)
    assert found("stale_tasks") == 0
    AgentRun.objects.update(created_at=ago(hours=3))
    health("--fix")
    work(rung)
    task.refresh_from_db()
    run.refresh_from_db()
    assert (task.status, run.status) == (TaskStatus.COMPLETED, RunStatus.FAILED)
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "I see"  # type: ignore[union-attr]
    assert "<task_report>" in str(llm.requests[0].body)
    assert all_is_well()


def test_a_task_nobody_works_on_reports_its_last_answer_and_keeps_it_as_asked(goal: Goal, rung: list[UUID]) -> None:
    task = AgentTaskFactory.create(parent=goal.thread, title="shoes", report_as_note=True)
    AgentTask.objects.update(created_at=ago(hours=3))
    live_run(task.thread, status=RunStatus.QUEUED, created_at=ago(hours=3))
    for content, metadata in [
        ("Red ones are 40 EUR.", {}),
        ("Let me look once more.", {"interim": True}),
        ("They may be blue.", {"interim": True, "thinking": True}),
    ]:
        ThreadMessage.objects.create(thread=task.thread, source=Source.AGENT, content=content, metadata=metadata)
    ThreadMessage.objects.create(thread=task.thread, source=Source.ERROR, content="The network failed.")
    watched(hours=3)
    health("--fix")
    task.refresh_from_db()
    assert (task.status, task.result) == (TaskStatus.COMPLETED, "Red ones are 40 EUR.")
    assert ThreadMessage.objects.filter(thread=goal.thread).last().content == "Red ones are 40 EUR."  # type: ignore[union-attr]
    note = Note.objects.get(thread=goal.thread)
    assert (note.title, note.body) == ("shoes", "Red ones are 40 EUR.")


def test_tasks_that_are_over_for_long_are_deleted(goal: Goal) -> None:
    kept: list[AgentTask] = []
    for days, status in [(16, TaskStatus.COMPLETED), (14, TaskStatus.COMPLETED), (16, TaskStatus.PAUSED)]:
        task = AgentTaskFactory.create(parent=goal.thread, status=status, paused_at=ago(hours=1))
        AgentTask.objects.filter(pk=task.pk).update(created_at=ago(days=20))
        AgentRunFactory(thread=task.thread, finished_at=ago(days=days))
        kept.append(task)
    monitor.examine(fix=True)
    assert {*AgentTask.objects.values_list("pk", flat=True)} == {task.pk for task in kept[1:]}
    assert not Thread.objects.filter(pk=kept[0].thread_id).exists()


def test_counters_are_made_true_and_waiting_messages_answered(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Reply(text="Here I am")])
    services.send_message(goal.thread, "Hi")
    rung.clear()
    AgentRun.objects.update(status=RunStatus.FAILED)
    Thread.objects.update(pending=7)
    health("--fix")
    work(rung)
    thread = Thread.objects.get(pk=goal.thread.pk)
    assert (thread.pending, thread.live_run) == (0, None)
    assert ThreadMessage.objects.filter(source=Source.AGENT).get().content == "Here I am"
    assert all_is_well()


def test_jobs_of_runs_that_are_over_leave_the_queue(goal: Goal) -> None:
    queue = django_rq.get_queue("default")
    alive = live_run(goal.thread, status=RunStatus.QUEUED)
    for run_id in (alive.pk, AgentRunFactory.create().pk, new_id()):
        queue.enqueue("agents.engine.jobs.run", str(run_id))
    bell.ring_archive(goal.thread.pk, goal.user_id, "idle")
    monitor.examine(fix=True)
    assert [job.args for job in queue.get_jobs()] == [(str(alive.pk),), (str(goal.thread.pk), "idle")]


def test_the_command_changes_nothing_unless_told_and_its_exit_code_tells(goal: Goal) -> None:
    run = live_run(goal.thread, status=RunStatus.RUNNING)
    with pytest.raises(CommandError):
        health()
    run.refresh_from_db()
    assert run.lease_until is None
    assert f"run {run.pk} (running)" in health("--fix")
    assert "1 found" not in health()


def test_the_command_tells_when_nobody_works(goal: Goal) -> None:
    run = live_run(goal.thread, status=RunStatus.QUEUED)
    assert "Queue: 1 waiting, the oldest for 0 s" in health()
    AgentRun.objects.filter(pk=run.pk).update(created_at=ago(seconds=80))
    redis_client().flushdb()
    assert unwell() == "Not well: Worker, Queue"


def test_who_waits_for_runs_of_their_own_is_not_late(goal: Goal, settings: Settings) -> None:
    live_run(goal.thread, status=RunStatus.QUEUED, created_at=ago(seconds=80))
    settings.WAYMARK_MAX_RUNNING_PER_USER = 1
    other = GoalFactory.create(user=goal.user)
    at_work = live_run(other.thread, status=RunStatus.RUNNING, lease_token=new_id(), lease_until=ago(seconds=-20))
    assert "Queue: 1 waiting, the oldest for 0 s" in health()
    AgentRun.objects.filter(pk=at_work.pk).update(lease_until=ago(seconds=1))  # its worker has died
    assert unwell() == "Not well: Queue"


def test_the_command_warns_of_a_disk_before_it_is_full(goal: Goal, settings: Settings) -> None:
    assert re.search(r"Disk: [\d.]+\s\wB free at ", health())
    settings.WAYMARK_DISK_LOW = 10**18
    assert unwell() == "Not well: Disk"


def test_the_command_tells_of_secrets_that_no_key_opens(goal: Goal, settings: Settings) -> None:
    ModelConnectionFactory.create(user=goal.user, sealed_key=seal("secret"))
    health()
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    assert unwell() == "Not well: Keys"


def test_the_command_tells_when_the_monitor_does_not_look(goal: Goal) -> None:
    watched(hours=2)
    assert "Health monitor: looked 0 min ago" in health()
    HealthReport.objects.update(at=ago(minutes=50))
    assert unwell() == "Not well: Health monitor"


def test_one_check_that_fails_stops_no_other(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(limit: int) -> list[Any]:
        raise RuntimeError("of the test")

    run = live_run(goal.thread, status=RunStatus.RUNNING)
    checks = [monitor.CHECKS[0]._replace(name="broken", find=broken), *monitor.CHECKS]
    monkeypatch.setattr(monitor, "CHECKS", checks)
    monitor.examine(fix=True)
    assert HealthReport.objects.get(name="broken").error == "RuntimeError: of the test"
    run.refresh_from_db()
    assert run.lease_until


def test_without_redis_the_database_is_still_put_right(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object) -> None:
        raise RedisError

    monkeypatch.setattr("rq.Queue.get_job_ids", away)
    run = live_run(goal.thread, status=RunStatus.RUNNING)
    assert "1 found, 1 fixed" in health("--fix")
    run.refresh_from_db()
    assert run.lease_until


def test_the_clock_looks_every_five_minutes_and_one_at_a_time(goal: Goal, settings: Settings) -> None:
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [HEALTH_LOCK])
        clock.tick()
    assert not HealthReport.objects.exists(), "another is at it"
    clock.tick()
    clock.tick()
    assert HealthReport.objects.count() == len(monitor.CHECKS), "not due again yet"
    HealthReport.objects.update(at=ago(minutes=5))
    clock.tick()
    assert HealthReport.objects.count() == 2 * len(monitor.CHECKS)
    HealthReport.objects.update(at=ago(days=-3))
    clock.tick()
    assert HealthReport.objects.count() == len(monitor.CHECKS), "of a clock that went ahead"
    HealthReport.objects.update(at=ago(days=8))
    clock.tick()
    assert HealthReport.objects.count() == len(monitor.CHECKS), "old reports are not kept"


def failing() -> None:
    raise ValueError


def test_what_fails_by_the_clock_keeps_nothing_else_from_its_turn(goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_BY_THE_CLOCK = [f"{__name__}.failing"]
    clock.tick()
    assert HealthReport.objects.exists()


def test_no_more_than_a_batch_at_once(goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_HEALTH_BATCH = 2
    for _ in range(3):
        AgentRunFactory(status=RunStatus.RUNNING)
    assert [found("stuck_runs"), monitor.examine(fix=True)[0].fixed, found("stuck_runs")] == [2, 2, 1]
    assert AgentRun.objects.filter(status__in=LIVE).count() == 3
