"""Agents that send others off: in parallel, without waiting, and called back with whoever sent them."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents import delegation, services
from agents.engine import jobs
from agents.engine.health import monitor
from agents.live.stream import redis_client
from agents.models import AgentTask, TaskStatus
from agents.stopping import stop_run
from goals.models import Goal
from goals.services import archive_goal
from memory.models import AgentRun, Author, Note, RunStatus, Source, ThreadMessage, Trigger
from tests.factories import AgentTaskFactory, GoalFactory, think_with
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker

type Say = Callable[[str], AgentRun]


def task(title: str, **more: object) -> tuple[str, dict[str, Any]]:
    return ("create_task", {"title": title, "instructions": f"Look up {title}", **more})


def last(text: str) -> Callable[[Request], bool]:
    """Requests whose last message has this text."""
    return lambda request: text in str(request.body["messages"][-1])


def work(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def said(goal: Goal) -> list[str]:
    return list(ThreadMessage.objects.filter(thread=goal.thread).exclude(content="").values_list("content", flat=True))


def sends_off(goal: Goal, llm: LLMServer, rung: list[UUID], *calls: tuple[str, dict[str, Any]]) -> AgentRun:
    """The goal's agent sends helpers off; their runs are queued and wait."""
    llm.script([Reply(calls=list(calls)), Reply(text="They are on it.")], "Go")
    services.send_message(goal.thread, "Go")
    jobs.run(str(rung.pop(0)))
    return AgentRun.objects.get(thread=goal.thread)


@pytest.mark.programs
def test_tasks_run_in_parallel_and_their_parent_talks_meanwhile(transactional_db: None, llm: LLMServer) -> None:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    hold = threading.Event()
    llm.script([Reply(calls=[task("shoes"), task("socks")]), Reply(text="They are on it.")], "Go")
    llm.script([Reply(text="Report on shoes", hold=hold)], "Look up shoes")
    llm.script([Reply(text="Report on socks", hold=hold)], "Look up socks")
    llm.script([Reply(text="Still here.")], last("Are you there?"))
    llm.script([Reply(text="Noted.")] * 2, last("<task_report>"))
    with worker(WAYMARK_MAX_RUNNING_PER_USER="3"):
        services.send_message(goal.thread, "Go")
        tasks = AgentRun.objects.filter(trigger=Trigger.TASK, status=RunStatus.RUNNING)
        wait_until(lambda: tasks.count() == 2)
        wait_until(lambda: "They are on it." in said(goal))
        services.send_message(goal.thread, "Are you there?")
        wait_until(lambda: "Still here." in said(goal))
        assert tasks.count() == 2, "both are at work while their parent talks"
        hold.set()
        wait_until(lambda: not AgentRun.objects.live().exists())
    assert {"Report on shoes", "Report on socks", "Noted."} <= {*said(goal)}
    assert {*AgentTask.objects.values_list("status", flat=True)} == {TaskStatus.COMPLETED}


def test_stopping_the_run_that_sent_tasks_off_calls_them_back(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    run = sends_off(goal, llm, rung, task("shoes"), task("socks"))
    other = AgentTaskFactory.create(parent=goal.thread)
    AgentRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
    stop_run(run)
    work(rung)
    sent = AgentTask.objects.filter(sent_by=run)
    assert {*sent.values_list("status", flat=True)} == {TaskStatus.CANCELLED}
    assert {*AgentRun.objects.filter(trigger=Trigger.TASK).values_list("status", flat=True)} == {RunStatus.CANCELLED}
    assert "Called back: “shoes”, “socks”." in said(goal)
    assert not AgentRun.objects.filter(trigger=Trigger.REPORT).exists(), "who was stopped is not woken by it"
    other.refresh_from_db()
    assert other.status == TaskStatus.ACTIVE, "another run's task goes on"


def test_archiving_a_goal_calls_its_tasks_back_and_wakes_nobody(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    archive_goal(goal)
    work(rung)
    assert AgentTask.objects.get().status == TaskStatus.CANCELLED
    assert AgentRun.objects.get(trigger=Trigger.TASK).status == RunStatus.CANCELLED
    assert not AgentRun.objects.filter(trigger=Trigger.REPORT).exists()


def test_a_task_stopped_by_itself_is_reported(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    llm.script([Reply(text="I see")], last("<task_report>"))
    stop_run(AgentRun.objects.get(trigger=Trigger.TASK))
    work(rung)
    assert AgentTask.objects.get().status == TaskStatus.CANCELLED
    assert "I see" in said(goal)


def test_a_late_report_is_told_once_and_wakes_the_parent(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    waiting, rung[:] = [*rung], []
    monitor.examine(fix=True)
    assert not rung
    AgentTask.objects.update(created_at=timezone.now() - timedelta(minutes=31))
    llm.script([Reply(text="It takes longer.")], last("<task_report>"))
    monitor.examine(fix=True)
    monitor.examine(fix=True)
    jobs.run(str(rung.pop(0)))
    assert sum("No report after 30 minutes" in text for text in said(goal)) == 1
    assert said(goal)[-1] == "It takes longer."
    llm.script([Reply(text="All about shoes")], "Look up shoes")
    llm.script([Reply(text="At last.")], last("<task_report>All about"))
    work(waiting)
    work(rung)
    assert AgentTask.objects.get().status == TaskStatus.COMPLETED
    assert "All about shoes" in said(goal)


def test_a_report_is_kept_as_a_note_where_asked(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    sends_off(goal, llm, rung, task("shoes", report_as_note=True), task("socks"))
    llm.script([Reply(text="Red ones.")], "Look up shoes")
    llm.script([Reply(text="Grey ones.")], "Look up socks")
    llm.script([Reply(text="Noted.")] * 2, last("<task_report>"))
    work(rung)
    note = Note.objects.get(thread=goal.thread)
    assert (note.title, note.body, note.author) == ("shoes", "Red ones.", Author.AGENT)


def test_what_is_switched_off_for_a_goal_is_off_for_its_tasks(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    Goal.objects.update(modes={"create_note": "off"})
    sends_off(goal, llm, rung, task("shoes"))
    llm.script([Reply(text="Red ones.")], "Look up shoes")
    llm.script([Reply(text="Noted.")], last("<task_report>"))
    work(rung)
    asked = next(request for request in llm.requests if "Look up shoes" in str(request.body.get("messages", [])[-1]))
    offered = {tool["function"]["name"] for tool in asked.body["tools"]}
    assert "search_notes" in offered
    assert "create_note" not in offered


def test_a_task_has_its_own_limit_of_steps(settings: Settings) -> None:
    settings.WAYMARK_MAX_ITERATIONS = 50
    assert AgentTask().limits().iterations == 20
    settings.WAYMARK_MAX_ITERATIONS = 5
    assert AgentTask().limits().iterations == 5


def test_a_context_type_chooses_the_prompt_of_its_own_agent_only(
    goal: Goal, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prompt_for(self: Goal, context_type: str) -> tuple[str, dict[str, object]]:
        title = "CHECK-IN" if context_type == "agent_check_in" else self.title
        return "goal", {"title": title, "description": ""}

    monkeypatch.setattr(Goal, "prompt_for", prompt_for)
    monkeypatch.setattr(AgentTask, "prompt_for", lambda task, context: ("task", {"title": f"mode={context}."}))
    llm.script([Reply(calls=[task("shoes")]), Reply(text="Checked."), Reply(text="Red ones."), Reply(text="Fine.")])
    services.wake(goal.thread, Trigger.MESSAGE, "agent_check_in")
    work(rung)

    prompts = [str(request.body["messages"][0]["content"]) for request in llm.requests]
    assert ["CHECK-IN" in prompt for prompt in prompts] == [True, True, False, False]
    assert "mode=." in prompts[2], "the child keeps where it comes from, and is in no mode"
    assert AgentTask.objects.get().origin_type == "agent_check_in"
    assert {run.context_type for run in AgentRun.objects.exclude(thread=goal.thread)} == {""}


def test_an_error_in_a_mode_is_tried_again_in_that_mode(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    llm.script([Reply(calls=[("search_notes", {"query": query})]) for query in ("a", "b", "c")])  # as many as it may
    services.wake(goal.thread, Trigger.MESSAGE, "agent_check_in")
    work(rung)
    services.retry(ThreadMessage.objects.get(source=Source.ERROR))
    assert AgentRun.objects.live().get().context_type == "agent_check_in"


def test_a_task_needs_a_title_and_instructions(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    blank = ("create_task", {"title": " \n", "instructions": "Look up shoes", "report_as_note": True})
    sends_off(goal, llm, rung, blank, ("create_task", {"title": "Shoes", "instructions": " "}))
    assert not AgentTask.objects.exists()
    assert not rung
    results = [message["content"] for message in llm.requests[-1].messages if message["role"] == "tool"]
    assert all("no task was created" in result for result in results)


def test_a_kind_whose_hook_fails_at_the_end_of_a_run_ends_it_visibly_and_once(
    goal: Goal, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> bool:
        raise ValueError("of the test")

    sends_off(goal, llm, rung, task("shoes"))
    monkeypatch.setattr(AgentTask, "settled", broken)
    llm.script([Reply(text="Red ones.")] * 2, "Look up shoes")
    work(rung)
    run = AgentRun.objects.get(trigger=Trigger.TASK)
    assert (run.status, run.reason, run.recoveries) == (RunStatus.FAILED, "bug", 0)
    assert run.cost_known == AgentRun.objects.get(thread=goal.thread).cost_known, "what was used is on record"
    assert run.input_tokens
    assert ThreadMessage.objects.filter(thread=run.thread, source=Source.ERROR).count() == 1
    assert AgentTask.objects.get().status == TaskStatus.ACTIVE, "the monitor completes and reports it in time"


def test_a_task_that_was_given_up_keeps_the_reason(goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    AgentTask.objects.update(status=TaskStatus.PAUSED)
    delegation.expire(AgentTask.objects.get(), "Given up: paused for 24 hours.")
    work(rung)
    given_up = AgentTask.objects.get()
    assert (given_up.status, given_up.result) == (TaskStatus.CANCELLED, "Given up: paused for 24 hours.")
