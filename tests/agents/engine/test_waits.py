"""Runs that let go, proposals nobody answers, and ends: who is rung for, who is told, and what the model learns."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connections as database
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents import delegation, services
from agents.connecting import Given, connect_model
from agents.engine import archiving, jobs, sweeper
from agents.engine.health.runs import abandon
from agents.live.stream import flush
from agents.models import AgentTask, TaskStatus
from agents.providers.capabilities import Capabilities
from agents.refusals import Refused
from agents.stopping import stop_run
from goals.models import Goal
from goals.services import archive_goal, reopen_goal
from memory.archive import Outcome
from memory.models import AgentRun, ArchiveReason, HistoryEntry, RunStatus, Thread, Trigger
from tests.agents.engine.test_approvals import decide
from tests.agents.engine.test_archiving import summaries, talk
from tests.agents.engine.test_calls import statuses
from tests.agents.engine.test_delegation import last, said, sends_off, task, work
from tests.agents.engine.test_orchestrator import assert_quiet, cells
from tests.agents.live.looks import payloads
from tests.factories import GoalFactory, bearer
from tests.llm_script import D, Raw, Reply, Status
from tests.llm_server import LLMServer
from tests.rewriting import rewriting
from tests.world import World
from tools.models import AgentAction, Approval, ApprovalState

type Say = Callable[[str], AgentRun]

EMAIL = ("send_email", {"text": "hello"})


@pytest.fixture
def proposed(goal: Goal, say: Say, llm: LLMServer, world: World) -> AgentAction:
    """A call that was answered as waiting, because its user went on talking; the run has ended."""
    llm.script([Reply(calls=[EMAIL]), Reply(text="It waits for your word.")])
    say("Write to them")
    say("By the way, hello")
    action = AgentAction.objects.get(tool="send_email")
    assert action.status == "proposed"
    assert_quiet(goal, llm)
    return action


def outcomes_pushed(action: AgentAction) -> list[str]:
    """The states of a call that open pages were told of."""
    assert flush(5)
    events = map(json.loads, payloads(action.thread_id))
    return [str(event["status"]) for event in events if event.get("action") == str(action.pk) and "status" in event]


def send(goal: Goal) -> UUID:
    run_id = services.send_message(goal.thread, "Go").run_id
    assert run_id is not None
    return run_id


def elsewhere(work: Callable[..., object], *args: object) -> None:
    """Do it while a model thinks, and wait for it."""

    def done() -> None:
        try:
            work(*args)
        finally:
            database.close_all()

    thread = threading.Thread(target=done)
    thread.start()
    thread.join()


def expire() -> None:
    Approval.objects.update(expires_at="2026-01-01T00:00Z")
    sweeper.sweep()


@pytest.mark.parametrize(
    ("reply", "waits"),
    [(Status(500), RunStatus.RETRY_WAIT), (Reply(calls=[EMAIL]), RunStatus.WAITING_APPROVAL)],
    ids=["retry", "approval"],
)
def test_who_begins_to_wait_lets_the_next_in(
    goal: Goal,
    rung: list[UUID],
    llm: LLMServer,
    world: World,
    settings: Settings,
    reply: Reply | Status,
    waits: RunStatus,
) -> None:
    settings.WAYMARK_MAX_RUNNING_PER_USER, settings.WAYMARK_RETRY_HELD_TRIES = 1, 0
    other: Goal = GoalFactory(user=goal.user)
    llm.script([reply])
    first, second = send(goal), send(other)
    rung.clear()
    jobs.run(str(first))
    assert AgentRun.objects.get(pk=first).status == waits
    assert rung == [second]


def test_who_is_given_up_lets_the_next_in(goal: Goal, rung: list[UUID], settings: Settings) -> None:
    settings.WAYMARK_MAX_RUNNING_PER_USER = 1
    other: Goal = GoalFactory(user=goal.user)
    first, second = send(goal), send(other)
    AgentRun.objects.filter(pk=first).update(created_at=timezone.now() - timedelta(hours=7))
    rung.clear()
    assert abandon(first, 3600)
    assert rung == [second]


def test_the_parent_of_a_task_that_cannot_be_assembled_is_told(
    goal: Goal, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: AgentTask, context_type: str) -> tuple[str, dict[str, object]]:
        raise RuntimeError("of the test")

    sends_off(goal, llm, rung, task("shoes"))
    monkeypatch.setattr(AgentTask, "prompt_for", broken)
    llm.script([Reply(text="Then without.")], last("<task_report>"))
    work(rung)
    assert AgentRun.objects.get(trigger=Trigger.TASK).status == RunStatus.FAILED
    assert AgentTask.objects.get().status == TaskStatus.PAUSED
    assert said(goal)[-1] == "Then without."
    assert_quiet(goal, llm)


def test_a_stopped_run_that_cannot_be_assembled_ends_as_stopped(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    goal.user.model_connections.update(sealed_key="from another server")
    services.send_message(goal.thread, "Hi")
    stop_run(AgentRun.objects.select_related("thread").get())
    work(rung)
    run = AgentRun.objects.get()
    assert (run.status, run.reason) == (RunStatus.CANCELLED, "stopped")
    assert "Stopped by you" in cells(goal)[-1][2]
    assert_quiet(goal, llm)


def test_a_proposal_that_expires_is_told_beside_the_next_message_and_once(
    goal: Goal, proposed: AgentAction, say: Say, rung: list[UUID], llm: LLMServer
) -> None:
    expire()
    assert not rung, "nobody is woken for it"
    llm.script([Reply(text="I see."), Reply(text="Fine.")])
    say("Anything new?")
    told = llm.requests[-1].last_user_text
    assert "Send “hello”: Nobody approved this call in time" in told
    assert told.index("<news>") < told.index("Anything new?")
    say("And now?")
    assert "<news>" not in llm.requests[-1].last_user_text
    assert_quiet(goal, llm)


def test_news_reach_a_run_that_is_at_work_with_the_message_that_it_takes_up(
    goal: Goal, proposed: AgentAction, say: Say, llm: LLMServer
) -> None:
    def meanwhile(request: object) -> Reply:
        elsewhere(expire)
        elsewhere(services.send_message, goal.thread, "One more thing")
        return Reply(calls=[("list_notes", {})])

    llm.script([meanwhile, Reply(text="I see.")])
    say("Go on")
    assert "Nobody approved this call in time" in llm.requests[-1].last_user_text
    assert "One more thing" in llm.requests[-1].last_user_text
    assert_quiet(goal, llm)


def test_a_proposal_that_is_withdrawn_with_its_goal_is_told_when_the_goal_is_taken_up_again(
    goal: Goal, proposed: AgentAction, say: Say, rung: list[UUID], llm: LLMServer
) -> None:
    archive_goal(goal)
    reopen_goal(goal)
    assert not rung
    assert (Approval.objects.get().state, statuses()) == ("cancelled", ["cancelled"])
    assert outcomes_pushed(proposed)[-1] == "cancelled"
    llm.script([Reply(text="I see.")])
    say("I am back")
    told = llm.requests[-1].last_user_text
    assert "Send “hello”: This call was withdrawn, it was not executed. The conversation was put away." in told
    assert_quiet(goal, llm)


def test_a_stop_withdraws_what_its_run_has_proposed_and_the_model_learns_it(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    def stopped(request: object) -> Reply:
        elsewhere(lambda: stop_run(AgentRun.objects.live().select_related("thread").get()))
        return Reply(calls=[("list_notes", {})])

    llm.script([Reply(calls=[EMAIL]), stopped, Reply(text="I see.")])
    say("Write to them")
    say("By the way, hello")
    assert AgentRun.objects.get().status == RunStatus.CANCELLED
    action = AgentAction.objects.get(tool="send_email")
    assert (action.status, action.approval.state) == ("cancelled", "cancelled")
    assert outcomes_pushed(action)[-1] == "cancelled"
    say("What now?")
    assert "What you had proposed in the turn that was stopped is withdrawn" in llm.requests[-1].last_user_text
    assert_quiet(goal, llm)


def test_con_05_d_a_call_that_is_archived_with_its_session_cannot_be_approved(
    goal: Goal, proposed: AgentAction, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    summaries(llm, Reply(text="They wrote a mail."))
    assert archiving.archive_session(goal.thread_id, ArchiveReason.IDLE) is Outcome.DONE
    with pytest.raises(Refused, match="withdrawn"):
        decide(proposed, ApprovalState.APPROVED)
    assert not rung
    assert statuses() == ["cancelled"]
    assert outcomes_pushed(proposed)[-1] == "cancelled"
    llm.script([Reply(text="I see.")])
    say("I am back")
    assert "Send “hello”: This call was withdrawn" in llm.requests[-1].last_user_text
    assert not world.texts("send_email")
    assert_quiet(goal, llm)


def test_a_session_in_which_a_call_waits_for_approval_is_not_archived_by_the_clock(
    goal: Goal, proposed: AgentAction
) -> None:
    Thread.objects.update(active_at="2026-01-01T00:00Z")
    HistoryEntry.objects.update(created_at="2026-01-01T00:00Z")
    assert archiving.ring_for_due() == 0
    decide(proposed, ApprovalState.REJECTED)
    AgentRun.objects.filter(status=RunStatus.QUEUED).update(status=RunStatus.CANCELLED)
    Thread.objects.update(active_at="2026-01-01T00:00Z", live_run=None)
    assert archiving.ring_for_due() == 1


def test_con_05_d_a_call_that_stays_in_the_live_session_can_still_be_approved(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    talk(goal, 8, size=400)
    summaries(llm, Reply(text="They talked."))
    llm.script([Reply(calls=[EMAIL]), Reply(text="It waits."), Reply(text="Sent.")])
    say("Write to them")
    say("By the way, hello")
    assert archiving.archive_session(goal.thread_id, ArchiveReason.LONG) is Outcome.DONE
    decide(AgentAction.objects.get(tool="send_email"), ApprovalState.APPROVED)
    work(rung)
    assert world.texts("send_email") == ["hello"]
    assert_quiet(goal, llm)


def test_a_model_learns_that_its_tasks_were_called_back_by_a_stop(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    run = sends_off(goal, llm, rung, task("shoes"), task("socks"))
    AgentRun.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
    stop_run(run)
    AgentRun.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED)
    work(rung)
    llm.script([Reply(text="I see.")], last("What now?"))
    say("What now?")
    told = llm.requests[-1].last_user_text
    assert "shoes" in told
    assert "socks" in told
    assert told.count("Called back before it was done") == 2
    assert_quiet(goal, llm)


def test_a_model_learns_that_its_tasks_were_called_back_with_its_goal(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    archive_goal(goal)
    reopen_goal(goal)
    work(rung)
    llm.script([Reply(text="I see.")], last("I am back"))
    say("I am back")
    assert "The task “shoes”: Called back" in llm.requests[-1].last_user_text
    assert_quiet(goal, llm)


def test_a_model_learns_that_a_paused_task_was_given_up(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    AgentRun.objects.filter(trigger=Trigger.TASK).update(status=RunStatus.FAILED)
    AgentTask.objects.update(status=TaskStatus.PAUSED)
    AgentTask.objects.get().thread.runs.update(status=RunStatus.FAILED)
    rung.clear()
    assert delegation.expire(AgentTask.objects.get(), "Given up: the task was paused for more than 24 hours.")
    assert not rung, "nobody is woken for it"
    llm.script([Reply(text="I see.")], last("What now?"))
    say("What now?")
    assert "The task “shoes”: Given up" in llm.requests[-1].last_user_text


def test_a_run_that_is_given_up_closes_its_calls_as_every_end_does(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("post", {"text": "hi", "then": "drop"}), EMAIL])])
    run = say("Write to them")
    assert run.status == RunStatus.WAITING_APPROVAL
    AgentRun.objects.update(status=RunStatus.QUEUED, created_at=timezone.now() - timedelta(hours=7))
    AgentRun.objects.update(started_at=timezone.now() - timedelta(hours=7))
    long_ago = {name: timezone.now() - timedelta(hours=7) for name in ("created_at", "started_at")}
    with rewriting():
        AgentAction.objects.filter(tool="post").update(status="started", finished_at=None)
        AgentAction.objects.update(**long_ago)
    run.calls.update(created_at=timezone.now() - timedelta(hours=7), finished_at=None)
    assert abandon(run.pk, 3600)
    assert statuses() == ["unknown", "cancelled"]
    assert Approval.objects.get().state == "cancelled"
    assert not world.texts("send_email")


@pytest.mark.parametrize("setting", ["WAYMARK_MODEL_IDLE_SECONDS", "WAYMARK_MODEL_SILENT_SECONDS"])
def test_a_model_that_says_nothing_is_given_up_after_a_time_that_can_be_set(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings, setting: str
) -> None:
    settings.WAYMARK_RETRY_HELD_TRIES = 0
    setattr(settings, setting, 0.2)
    llm.script([Raw([D({"content": "Let me"}), *[b": still here\n\n"] * 20], gap=0.05 if "SILENT" in setting else 2)])
    run = say("Hi")
    assert run.status == RunStatus.RETRY_WAIT
    assert "did not answer in time" in cells(goal)[-1][2]


@pytest.mark.parametrize(
    ("kind", "thinks", "waits"),
    [("compatible", True, True), ("compatible", None, False), ("openai", True, True), ("anthropic", True, False)],
)
def test_a_model_that_thinks_in_silence_is_not_given_up(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings, kind: str, thinks: bool | None, waits: bool
) -> None:
    settings.WAYMARK_RETRY_HELD_TRIES = 0
    settings.WAYMARK_MODEL_IDLE_SECONDS = 0.2
    connect_model(goal.user, kind, Given("m", llm.url, "key-of-the-test", corrections=Capabilities(thinking=thinks)))
    llm.script([Reply("Forty-two.", first_token=1.5)])
    assert say("Hi").status == (RunStatus.SUCCEEDED if waits else RunStatus.RETRY_WAIT)


def test_an_unknown_outcome_is_never_called_a_failure(
    goal: Goal, say: Say, llm: LLMServer, world: World, client: Client
) -> None:
    llm.script([Reply(calls=[("post", {"text": "hello", "then": "drop"})]), Reply(text="I do not know.")])
    say("Go")
    action = AgentAction.objects.get()
    client.force_login(goal.user)
    for page in (f"/goals/{goal.pk}/", f"/actions/{action.pk}/"):
        shown = client.get(page).content.decode()
        assert "Not known whether it happened:" in shown
        assert "Could not send" not in shown
    answer = client.get(f"/api/v1/runs/{action.run_id}", headers=bearer(goal.user))
    assert "Could not send" not in answer.content.decode()


def test_the_reason_of_a_rejection_is_worded_alike_before_and_after_the_run_went_on(
    goal: Goal, proposed: AgentAction, say: Say, rung: list[UUID], llm: LLMServer
) -> None:
    llm.script([Reply(text="Then not."), Reply(calls=[EMAIL]), Reply(text="Then not.")])
    decide(proposed, ApprovalState.REJECTED, "Too early")
    work(rung)
    say("Try once more")
    decide(AgentAction.objects.get(status="intent"), ApprovalState.REJECTED, "Too early")
    work(rung)
    reasons = [action.error or action.output for action in AgentAction.objects.filter(tool="send_email")]
    assert reasons == ["The user rejected this call, it was not executed. Their reason: Too early"] * 2
    assert_quiet(goal, llm)
