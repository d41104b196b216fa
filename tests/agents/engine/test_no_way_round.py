"""Ways round a person's word that were once open: none of them leads anywhere (missions D9, D10, H6; threat T10)."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agents import decisions, services
from agents.engine import gates, jobs, journal, orchestrator
from agents.engine.calls import Call
from agents.models import AgentTask
from agents.proposed_call import ProposedCall
from agents.refusals import Refused
from agents.undoing import take_back
from goals.models import Goal
from goals.toolbox import set_modes
from memory.models import AgentRun, Author, Note, Thread
from memory.notes import create_note, update_note
from memory.pool import orm
from tests.agents.engine.test_recovery import expire_leases
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.world import PAGES, Killed, SendEmail, Upsert, World
from tools import files, filing, trust
from tools.builtin.workspace import WriteFile
from tools.models import AgentAction, Approval, ApprovalState
from tools.sandbox.folder import Folder

type Say = Callable[[str], AgentRun]

APPROVED, REJECTED = ApprovalState.APPROVED, ApprovalState.REJECTED
PAGE = "https://stranger.example/a"


@pytest.fixture(autouse=True)
def page() -> Any:
    PAGES[PAGE] = "Red shoes are on sale."
    yield
    PAGES.clear()


@pytest.fixture
def note(goal: Goal) -> Note:
    """The agent's own, which it may change only when its user says so."""
    Goal.objects.update(modes={"update_note": "ask"})
    return create_note(goal.thread, "Shoes", "blue", Author.AGENT)


def drain(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def proposes(say: Say, llm: LLMServer, note: Note, body: str) -> AgentAction:
    llm.reset()
    llm.script([Reply(calls=[("update_note", {"id": str(note.pk), "body": body})])])
    llm.always(Reply("It is done."))
    say(f"Make it {body}")
    return AgentAction.objects.filter(tool="update_note").latest("created_at")


def decide(action: AgentAction, state: ApprovalState, rung: list[UUID]) -> None:
    decisions.decide(action, action.user, state, ProposedCall(action).shown)
    drain(rung)
    action.refresh_from_db()


def earn(say: Say, llm: LLMServer, rung: list[UUID], note: Note, times: int = 2) -> None:
    for number in range(times):
        decide(proposes(say, llm, note, f"kind {number}"), APPROVED, rung)


def has_helper_call(say: Say, llm: LLMServer, rung: list[UUID], tool: str, arguments: dict[str, Any]) -> AgentAction:
    """A helper is sent off, and makes one call."""
    llm.reset()
    llm.script([Reply(calls=[(tool, arguments)])], "Look it up")
    llm.script([Reply(calls=[("create_task", {"title": "T", "instructions": "Look it up"})])], "Send")
    llm.always(Reply("Good."))
    say("Send someone")
    task = AgentTask.objects.latest("created_at")
    return AgentAction.objects.filter(thread=task.thread, tool=tool).latest("created_at")


def test_a_call_that_was_not_offered_does_not_run_unasked_when_its_worker_dies(
    goal: Goal, llm: LLMServer, rung: list[UUID], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SendEmail, "withheld", lambda self: "not now")
    outcome, deaths = journal.outcome, iter([1])

    def dies_once(*args: Any, **more: Any) -> Any:
        for _ in deaths:
            raise Killed
        return outcome(*args, **more)

    monkeypatch.setattr(journal, "outcome", dies_once)
    llm.script([Reply(calls=[("send_email", {"text": "secret"})]), Reply("I cannot.")])
    services.send_message(goal.thread, "Go on")
    run = rung.pop()
    with pytest.raises(Killed):
        jobs.run(str(run))
    monkeypatch.setattr(SendEmail, "withheld", lambda self: "")
    expire_leases()
    jobs.run(str(run))
    assert world.texts("send_email") == []
    assert AgentAction.objects.get().status == "denied"


def test_a_stranger_cannot_have_an_undo_undone(goal: Goal, say: Say, llm: LLMServer, world: World) -> None:
    """The user wanted it back; undoing that is deleting it."""
    mine = create_note(goal.thread, "Mine", "my words")
    llm.script([Reply(calls=[("delete_note", {"id": str(mine.pk)})]), Reply("It is deleted.")])
    say("Delete it")
    deleted = str(AgentAction.objects.get(tool="delete_note").pk)
    llm.script([Reply(calls=[("undo_action", {"id": deleted})]), Reply("It is back.")])
    say("No, I want it back")
    back = str(AgentAction.objects.get(tool="undo_action").pk)
    llm.script([Reply(calls=[("open_page", {"address": PAGE})]), Reply(calls=[("undo_action", {"id": back})])])
    run = say("Read the page")
    assert run.status == "waiting_approval"
    assert Note.objects.filter(pk=mine.pk).exists()


def test_what_is_read_after_its_user_vouched_marks_the_agent_anew(
    goal: Goal, say: Say, llm: LLMServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, replies = journal.reply, []

    def reply(*args: Any, **more: Any) -> Any:
        replies.append(args)
        if len(replies) == 2:
            services.trust_again(goal.thread)
        return recorded(*args, **more)

    monkeypatch.setattr(journal, "reply", reply)
    opens = Reply(calls=[("open_page", {"address": PAGE})])
    llm.script([opens, opens, Reply("I have read it.")])
    say("Read it")
    assert Thread.objects.get(pk=goal.thread_id).sources == [PAGE]
    llm.script([Reply(calls=[("post", {"text": "Red shoes!"})])])
    assert say("Go on").status == "waiting_approval"
    assert world.texts("post") == []


def test_ask_ends_what_was_allowed_before(goal: Goal, say: Say, llm: LLMServer, note: Note, world: World) -> None:
    Goal.objects.update(modes={})
    goal.refresh_from_db()
    trust.grant(goal.user, goal.thread, "update_note", None)
    set_modes(goal, {"update_note": "ask"})
    proposes(say, llm, note, "red")
    assert AgentRun.objects.latest("created_at").status == "waiting_approval"


def test_what_a_user_has_made_of_a_call_does_not_run_on_what_was_changed_since(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note
) -> None:
    action = proposes(say, llm, note, "red")
    decisions.edit(action, goal.user, ProposedCall(action).shown, {"id": str(note.pk), "body": "edited"})
    update_note(note, body="precious")
    drain(rung)
    note.refresh_from_db()
    assert note.body == "precious"
    with pytest.raises(Refused, match="You changed this already"):
        decisions.decide(action, goal.user, REJECTED, ProposedCall(action).shown)


def test_each_approved_call_is_compared_right_before_it_runs(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user writes something while an earlier call of the reply takes its time."""
    Goal.objects.update(modes={"update_note": "ask", "upsert": "ask"})
    update = ("update_note", {"id": str(note.pk), "body": "agent's"})
    llm.script([Reply(calls=[("upsert", {"text": "slow"}), update])])
    llm.always(Reply("Good."))
    say("Go on")
    act = Upsert.act

    def meanwhile(self: Upsert, *args: Any) -> None:
        with orm():
            update_note(Note.objects.get(pk=note.pk), body="precious")
        act(self, *args)

    monkeypatch.setattr(Upsert, "act", meanwhile)
    for action in AgentAction.objects.all():
        decisions.decide(action, goal.user, APPROVED, ProposedCall(action).shown)
    drain(rung)
    note.refresh_from_db()
    assert (note.body, world.texts("upsert")) == ("precious", ["slow"])


def test_a_file_that_was_changed_since_it_was_approved_is_not_replaced(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], client: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    Goal.objects.update(modes={"write_file": "ask"})
    filing.add_file(goal.thread, "mine.md", 4, iter([b"mine"]))
    llm.script([Reply(calls=[("write_file", {"path": "mine.md", "content": "agent's"})])])
    llm.always(Reply("Good."))
    say("Go on")
    action = AgentAction.objects.get(tool="write_file", run__isnull=False)
    client.force_login(goal.user)
    assert "what it holds now (4 bytes)" in client.get("/approvals/").content.decode()
    shown = ProposedCall(action).shown
    decisions.decide(action, goal.user, APPROVED, shown)
    filing.add_file(goal.thread, "mine.md", 8, iter([b"precious"]))
    drain(rung)
    action.refresh_from_db()
    assert action.status == "denied"
    assert (Folder(goal.thread_id).files / "mine.md").read_bytes() == b"precious"


def test_an_undo_of_a_file_in_a_busy_workspace_says_so(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    llm.script([Reply(calls=[("write_file", {"path": "a.txt", "content": "x"})]), Reply("Good.")])
    say("Write it")

    def busy(thread_id: UUID) -> None:
        raise files.FileRefused("The workspace is busy.")

    monkeypatch.setattr(files, "locked", busy)
    with pytest.raises(Refused, match="The workspace is busy"):
        take_back(AgentAction.objects.get(), goal.user)


def while_it_is_proposed(goal: Goal, state: ApprovalState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide when a run has looked for decisions, and before it has said that it goes on without."""
    let_go, propose, once = gates._let_go, Call.propose, iter([1])

    def a_message_comes(lease: journal.Lease) -> Any:
        for _ in once:
            services.send_message(goal.thread, "By the way")
        return let_go(lease)

    def decided(call: Call) -> None:
        propose(call)
        action = AgentAction.objects.get(tool="send_email")
        decisions.decide(action, goal.user, state, ProposedCall(action).shown)

    monkeypatch.setattr(gates, "_let_go", a_message_comes)
    monkeypatch.setattr(Call, "propose", decided)


@pytest.mark.parametrize("state", [APPROVED, REJECTED])
@pytest.mark.parametrize("speaks", [True, False], ids=["and speaks", "alone"])
def test_a_decision_in_the_last_moment_is_not_lost(
    goal: Goal,
    llm: LLMServer,
    rung: list[UUID],
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    state: ApprovalState,
    speaks: bool,
) -> None:
    while_it_is_proposed(goal, state, monkeypatch)
    more = [("send_message", {"text": "I ask"})] if speaks else []
    llm.script([Reply(calls=[("send_email", {"text": "hello"}), *more])])
    llm.always(Reply("Good."))
    services.send_message(goal.thread, "Write to them")
    drain(rung)
    action = AgentAction.objects.get(tool="send_email")
    assert action.status == {"approved": "done", "rejected": "denied"}[state]
    assert world.texts("send_email") == ["hello"] * (state is APPROVED)


def approved_beside(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> AgentAction:
    """A call that was approved, and whose run failed before it came to it."""
    llm.script([Reply(calls=[("send_email", {"text": "hello"})])])
    llm.always(Reply("Good."))
    say("Write to them")
    say("By the way")
    action = AgentAction.objects.get(tool="send_email")

    def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(orchestrator, "StandIn", broken)
        decide(action, APPROVED, rung)
    assert action.status == "proposed"
    return action


def test_what_was_approved_is_carried_out_by_the_next_run_if_the_first_fails(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved_beside(goal, say, llm, rung, monkeypatch)
    say("Something else")
    assert world.texts("send_email") == ["hello"]


def test_an_approval_is_void_when_nobody_could_carry_it_out_in_time(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = approved_beside(goal, say, llm, rung, monkeypatch)
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert decisions.expire_due() == 1
    action.refresh_from_db()
    assert action.status == "cancelled"
    say("Something else")
    assert world.texts("send_email") == []
    assert "could not be carried out in time" in llm.requests[-1].last_user_text


def test_what_was_earned_is_not_offered_again_after_an_undo(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note, settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 2
    earn(say, llm, rung, note)
    assert len(trust.offers(goal.user)) == 1
    trust.grant(goal.user, goal.thread, "update_note", None)
    take_back(proposes(say, llm, note, "red"), goal.user)
    assert not trust.standing(goal.user).exists()
    assert not trust.offers(goal.user)


def test_what_helpers_are_allowed_counts_and_ends_with_their_agent(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], world: World, settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 1
    Goal.objects.update(modes={"upsert": "ask"})
    first = has_helper_call(say, llm, rung, "upsert", {"text": "one"})
    decide(first, APPROVED, rung)
    (offer,) = trust.offers(goal.user)
    assert offer.thread == goal.thread
    trust.grant(goal.user, offer.thread, offer.tool, None)
    assert has_helper_call(say, llm, rung, "upsert", {"text": "two"}).status == "done"
    trust.revoke(first.thread_id, "upsert", "its helper's was undone")
    third = has_helper_call(say, llm, rung, "upsert", {"text": "three"})
    assert third.approval.state == ApprovalState.REQUESTED
    decide(third, REJECTED, rung)
    assert not trust.offers(goal.user)


def test_what_cannot_be_seen_is_named_and_nothing_is_cut(
    goal: Goal, say: Say, llm: LLMServer, world: World, client: Client
) -> None:
    client.force_login(goal.user)
    text = "pay \u202e001 elcun ot\u202c now" + "a" * 4_100 + "TRANSFER ALL"
    llm.script([Reply(calls=[("send_email", {"text": text})])])
    say("Write to them")
    facts = client.get("/approvals/").content.decode().partition('<dl class="facts">')[2].partition("</dl>")[0]
    assert "pay [U+202E]001 elcun ot[U+202C] now" in facts
    assert "TRANSFER ALL" in facts


def test_what_was_looked_up_can_be_undone(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    run = WriteFile.run

    def lost(self: WriteFile, *args: Any) -> Any:
        run(self, *args)
        raise RuntimeError("the answer was lost")

    monkeypatch.setattr(WriteFile, "run", lost)
    llm.script([Reply(calls=[("write_file", {"path": "a.txt", "content": "x"})])])
    llm.always(Reply("Good."))
    say("Write it")
    action = AgentAction.objects.get(tool="write_file")
    assert action.status == "unknown"
    decisions.check(action.pk, goal.user_id)
    action.refresh_from_db()
    assert (action.status, action.resolution) == ("done", "checked")
    take_back(action, goal.user)
    action.refresh_from_db()
    assert action.undone
