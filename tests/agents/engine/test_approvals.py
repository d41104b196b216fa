"""Calls that wait for a person's word: decided once, carried out once, and never by accident."""

import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connections as database
from django.test import Client
from django.utils import timezone

from agents import decisions, services
from agents.engine import bell, jobs, sweeper
from agents.engine.health import monitor
from agents.engine.leases import leases
from agents.proposed_call import ProposedCall
from agents.refusals import Refused
from agents.stopping import stop_run
from goals.models import Goal
from goals.services import archive_goal
from memory.models import AgentRun, HistoryEntry, RunStatus, ThreadMessage
from memory.notes import create_note, delete_note
from tests.agents.engine.test_calls import answers, die, statuses
from tests.agents.engine.test_orchestrator import assert_quiet, cells
from tests.agents.engine.test_recovery import expire_leases
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.rewriting import rewriting
from tests.world import Killed, World
from tools.models import AgentAction, Approval, ApprovalState, Resolution

type Say = Callable[[str], AgentRun]

EMAIL = ("send_email", {"text": "hello"})
APPROVED, REJECTED = ApprovalState.APPROVED, ApprovalState.REJECTED


@pytest.fixture
def asked(goal: Goal, say: Say, llm: LLMServer, world: World) -> AgentAction:
    """An agent has read something and now wants to send an e-mail."""
    llm.script([Reply(calls=[("slow", {"seconds": 0.01}), EMAIL])])
    run = say("Write to them")
    assert run.status == RunStatus.WAITING_APPROVAL
    assert run.lease_token is None
    assert run.due_at is not None
    assert not leases.held, "it holds no worker"
    assert statuses() == ["done", "intent"]
    return AgentAction.objects.get(tool="send_email")


def decide(action: AgentAction, state: ApprovalState, reason: str = "", shown: str = "") -> None:
    decisions.decide(action, action.user, state, shown or action.approval.digest, reason)


def work_off(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def test_an_approved_call_runs_once_and_the_run_goes_on_in_its_step(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(text="It is sent.")])
    decide(asked, APPROVED)
    work_off(rung)
    run = AgentRun.objects.get()
    assert (run.status, run.step, run.recoveries) == (RunStatus.SUCCEEDED, 2, 0)
    assert world.texts("send_email") == ["hello"]
    assert len(world.texts("begin")) == 1, "steps before the approval are not run again"
    assert answers(llm) == ["Waited 0.01 s.", "Sent hello."]
    assert cells(goal)[-1][2] == "It is sent."
    assert_quiet(goal, llm)


def test_a_rejection_tells_the_model_why(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(text="Then I will not.")])
    decide(asked, REJECTED, "Too early")
    work_off(rung)
    assert not world.texts("send_email")
    assert statuses() == ["done", "denied"]
    assert "rejected" in answers(llm)[1]
    assert "Too early" in answers(llm)[1]
    assert_quiet(goal, llm)


@pytest.mark.parametrize("states", [(APPROVED, APPROVED), (APPROVED, REJECTED)], ids=["a", "b"])
def test_con_05_a_and_b_of_two_decisions_at_once_one_counts(
    goal: Goal,
    asked: AgentAction,
    rung: list[UUID],
    llm: LLMServer,
    world: World,
    states: tuple[ApprovalState, ApprovalState],
) -> None:
    llm.script([Reply(text="Very well.")] * 2)
    refused = []

    def press(state: ApprovalState) -> None:
        try:
            decide(asked, state)
        except Refused as error:
            refused.append(error.code)
        finally:
            database.close_all()

    tabs = [threading.Thread(target=press, args=(state,)) for state in states]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    work_off(rung)
    approval = Approval.objects.get()
    assert len(world.texts("send_email")) == (1 if approval.state == APPROVED else 0)
    assert refused == ([] if states[0] is states[1] else ["decided"])
    assert approval.decided_by == asked.user
    assert_quiet(goal, llm)


def test_con_05_c_a_message_is_never_an_approval_and_the_call_stays_proposed(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(text="Still waiting for your word."), Reply(text="Now it is sent.")])
    shown = asked.approval.digest
    services.send_message(goal.thread, "Yes, go ahead")
    work_off(rung)
    assert not world.texts("send_email")
    assert statuses() == ["done", "proposed"]
    assert "waits for the user's approval" in answers(llm)[1]
    assert cells(goal)[-1][2] == "Still waiting for your word."
    assert_quiet(goal, llm)

    decide(asked, APPROVED, shown=shown)
    work_off(rung)

    assert world.texts("send_email") == ["hello"]
    assert statuses() == ["done", "done"]
    told = [m["content"] for m in llm.requests[-1].messages if m["role"] == "user"]
    assert told[-2].endswith("Approved: Send “hello”")
    assert "Sent hello." in told[-1]
    assert cells(goal)[-1][2] == "Now it is sent."
    results = HistoryEntry.objects.filter(thread=goal.thread, role="tool")
    assert len({block["id"] for entry in results for block in entry.blocks}) == results.count() == 2
    assert_quiet(goal, llm)


def test_a_proposal_that_is_rejected_later_is_told_with_the_reason(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(text="Waiting."), Reply(text="Then not.")])
    services.send_message(goal.thread, "ping?")
    work_off(rung)
    decide(asked, REJECTED, "Too early")
    work_off(rung)
    assert statuses() == ["done", "denied"]
    assert "Too early" in llm.requests[-1].last_user_text
    assert_quiet(goal, llm)


def test_con_05_d_what_belongs_to_an_archived_conversation_cannot_be_approved(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(text="Waiting.")])
    services.send_message(goal.thread, "Hm")
    work_off(rung)
    archive_goal(goal)
    with pytest.raises(Refused, match="withdrawn"):
        decide(asked, APPROVED)
    work_off(rung)
    assert not world.texts("send_email")
    assert statuses() == ["done", "cancelled"]
    assert_quiet(goal, llm)


def test_con_05_e_only_what_was_shown_can_be_approved(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    with pytest.raises(Refused) as refused:
        decide(asked, APPROVED, shown="0" * 64)
    assert refused.value.code == "changed"
    with rewriting():
        AgentAction.objects.filter(pk=asked.pk).update(arguments={"text": "something else"})
    with pytest.raises(Refused) as refused:
        decide(asked, APPROVED)
    assert refused.value.code == "changed"
    assert not rung
    assert Approval.objects.get().state == "requested"


def test_con_05_f_a_restart_between_approval_and_execution_runs_it_once(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object) -> None:
        raise Killed

    llm.script([Reply(text="It is sent.")])
    decide(asked, APPROVED)
    run_id = rung.pop()
    with monkeypatch.context() as patched:
        patched.setattr("agents.engine.journal.start", killed)
        die(run_id)
    jobs.run(str(run_id))
    assert world.texts("send_email") == ["hello"]
    assert AgentRun.objects.get().status == RunStatus.SUCCEEDED
    assert_quiet(goal, llm)


def test_con_05_f_a_crash_in_the_approved_call_is_reported_and_not_repeated(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello", "then": "crash"})]), Reply(text="I cannot tell.")])
    say("Write to them")
    decide(AgentAction.objects.get(), APPROVED)
    run_id = rung.pop()
    die(run_id)
    jobs.run(str(run_id))
    assert world.texts("send_email") == ["hello"]
    assert statuses() == ["unknown"]
    assert_quiet(goal, llm)


def test_f11_a_stop_closes_the_approval(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    stop_run(AgentRun.objects.select_related("thread").get())
    with pytest.raises(Refused, match="withdrawn"):
        decide(asked, APPROVED)
    work_off(rung)
    assert AgentRun.objects.get().status == RunStatus.CANCELLED
    assert Approval.objects.get().state == "cancelled"
    assert not world.texts("send_email")
    assert "Not done: send “hello”" in cells(goal)[-1][2]
    assert_quiet(goal, llm)


def test_f11_approve_against_stop_against_expiry_runs_it_at_most_once(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    for number in range(6):
        llm.script([Reply(calls=[EMAIL]), Reply(text="Done."), Reply(text="Done.")])
        say("Write to them")
        action = AgentAction.objects.get(status="intent")
        Approval.objects.filter(pk=action.pk).update(expires_at=timezone.now() + timedelta(milliseconds=5 * number))
        before = len(world.texts("send_email"))
        run = AgentRun.objects.select_related("thread").get(actions=action)

        def quietly(work: Callable[..., object], *args: object) -> None:
            try:
                work(*args)
            except Refused:
                pass
            finally:
                database.close_all()

        racers = [
            threading.Thread(target=quietly, args=args)
            for args in [(decide, action, APPROVED), (stop_run, run), (decisions.expire_due,)]
        ]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        work_off(rung)
        state = Approval.objects.get(pk=action.pk).state
        sent = len(world.texts("send_email")) - before
        assert sent <= (1 if state == APPROVED else 0)
        assert AgentRun.objects.get(pk=run.pk).status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED)
        llm.reset()
    assert_quiet(goal, llm)


def test_what_nobody_decides_expires_and_the_run_goes_on(
    goal: Goal, asked: AgentAction, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(text="Nobody answered.")])
    Approval.objects.update(expires_at="2026-01-01T00:00Z")
    with pytest.raises(Refused, match="expired"):
        decide(asked, APPROVED)
    sweeper.sweep()
    work_off(rung)
    assert Approval.objects.get().state == "expired"
    assert "in time" in answers(llm)[1]
    assert not world.texts("send_email")
    assert_quiet(goal, llm)


def unknown_call(goal: Goal, say: Say, llm: LLMServer, tool: str = "post", text: str = "hello") -> AgentAction:
    llm.script([Reply(calls=[(tool, {"text": text, "then": "drop"})]), Reply(text="I do not know.")])
    say("Go")
    action = AgentAction.objects.get()
    assert action.status == "unknown"
    return action


def test_it_happened_is_recorded_with_who_and_when_and_told(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    action = unknown_call(goal, say, llm)
    llm.script([Reply(text="Good.")])
    decisions.resolve(action, action.user, Resolution.HAPPENED)
    work_off(rung)
    action.refresh_from_db()
    assert (action.status, action.resolution, action.resolved_by) == ("done", "happened", action.user)
    assert action.resolved_at
    assert "It happened" in llm.requests[-1].last_user_text
    with pytest.raises(Refused):
        decisions.resolve(action, action.user, Resolution.RUN_AGAIN)
    assert world.texts("post") == ["hello"]
    assert_quiet(goal, llm)


def test_run_again_is_a_call_of_its_own_and_runs_once(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    action = unknown_call(goal, say, llm)
    llm.script([Reply(text="Sent now.")])
    decisions.resolve(action, action.user, Resolution.RUN_AGAIN)
    with pytest.raises(Refused):
        decisions.resolve(action, action.user, Resolution.RUN_AGAIN)
    work_off(rung)
    new = AgentAction.objects.get(repeats=action)
    assert (new.status, new.approval.decided_by) == ("unknown", action.user), "it drops its first answer as well"
    assert world.calls("post") == [str(action.pk), str(new.pk)]
    assert ThreadMessage.objects.filter(metadata__action=str(new.pk)).count() == 1
    assert "decided_call" in llm.requests[-1].last_user_text
    action.refresh_from_db()
    assert (action.status, action.resolution) == ("unknown", "run_again")
    assert_quiet(goal, llm)


def test_run_again_survives_the_death_of_its_worker(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object) -> None:
        raise Killed

    action = unknown_call(goal, say, llm)
    llm.script([Reply(text="Sent now.")])
    decisions.resolve(action, action.user, Resolution.RUN_AGAIN)
    run_id = rung.pop()
    with monkeypatch.context() as patched:
        patched.setattr("agents.engine.journal.start", killed)
        die(run_id)
    jobs.run(str(run_id))
    assert len(world.texts("post")) == 2
    assert ThreadMessage.objects.filter(message_type="tool").count() == 2
    assert_quiet(goal, llm)


def test_a_verifiable_call_can_be_checked_by_its_user(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[tuple[str, int]] = []

    def ask(action_id: UUID, user_id: int) -> bool:
        checks.append((str(action_id), user_id))
        return True

    monkeypatch.setattr(bell, "ask_for_check", ask)
    action = unknown_call(goal, say, llm, "book", "secret")
    decisions.resolve(action, action.user, Resolution.CHECKED)
    jobs.check(*checks[0])
    action.refresh_from_db()
    assert action.status == "unknown", "the other side does not answer the first time"
    assert not rung
    llm.script([Reply(text="It is booked.")])
    jobs.check(*checks[0])
    jobs.check(*checks[0])
    work_off(rung)
    action.refresh_from_db()
    assert (action.status, action.resolution, action.output) == ("done", "checked", "Found secret.")
    assert "did happen" in llm.requests[-1].last_user_text
    assert world.texts("book") == ["secret"]
    assert_quiet(goal, llm)


def test_a_verifiable_call_is_checked_by_itself_more_and_more_seldom(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    def ring(job: str, *arguments: object, user: int | None = None) -> bool:
        asked.extend([arguments] if job == "check" else [])
        return True

    monkeypatch.setattr(bell, "_ring", ring)
    action = unknown_call(goal, say, llm, "book", "secret")

    def looks(minutes: float) -> bool:
        """Whether the monitor asks when the call has ended so long ago."""
        asked.clear()
        with rewriting():
            AgentAction.objects.update(finished_at=timezone.now() - timedelta(minutes=minutes))
        monitor.examine(fix=True)
        return asked == [(str(action.pk), None)]

    assert [looks(minutes) for minutes in (1, 6, 11, 16, 21, 26, 38, 41, 3000)] == [
        *(False, True, True, False, True, False, False, True, False)
    ]
    AgentRun.objects.update(finished_at=None)
    assert not looks(6), "its run may still look it up"
    AgentRun.objects.update(finished_at=timezone.now())
    jobs.check(str(action.pk), None)
    action.refresh_from_db()
    assert action.status == "unknown", "the other side does not answer the first time"
    jobs.check(str(action.pk), None)
    action.refresh_from_db()
    assert (action.status, action.resolution, action.resolved_by) == ("done", "checked", None)
    assert not looks(6)
    assert not rung, "nobody is woken for it"
    llm.script([Reply(text="It is booked.")])
    say("And?")
    assert "did happen, do not repeat it" in llm.requests[-1].last_user_text
    assert world.texts("book") == ["secret"]


def test_a_dead_worker_among_waiting_calls_leaves_them_waiting(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("post", {"text": "first", "then": "crash"}), EMAIL]), Reply(text="Done.")])
    services.send_message(goal.thread, "Go")
    run_id = rung.pop()
    die(run_id)
    jobs.run(str(run_id))
    assert statuses() == ["unknown", "intent"]
    assert AgentRun.objects.get().status == RunStatus.WAITING_APPROVAL
    decide(AgentAction.objects.get(tool="send_email"), APPROVED)
    work_off(rung)
    assert world.events[-1][0] == "send_email"
    assert len(world.events) == 2
    expire_leases()
    assert_quiet(goal, llm)


def test_what_was_asked_is_told_by_the_name_that_it_had_then(
    goal: Goal, say: Say, llm: LLMServer, client: Client
) -> None:
    note = create_note(goal.thread, "Offer", "Friday")
    Goal.objects.update(modes={"delete_note": "ask"})
    llm.script([Reply(calls=[("delete_note", {"id": str(note.pk)})])])
    say("Clear up")
    approval = Approval.objects.get()
    assert approval.target == "Offer"
    decide(approval.action, REJECTED, "Mine", ProposedCall(approval.action).shown)
    delete_note(note)
    client.force_login(goal.user)
    assert "Delete a note “Offer”: rejected: “Mine”" in client.get("/since/").text
    assert "Delete a note “Offer”" in client.get("/approvals/").text
    Approval.objects.update(target=None)  # of before names were kept
    assert "Delete a note: rejected: “Mine”" in client.get("/since/").text
