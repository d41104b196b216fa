"""What a person allows from now on, changes before it runs, or wants to be asked about (missions D9, H6)."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agents import decisions
from agents.engine import jobs
from agents.proposed_call import ProposedCall
from agents.refusals import Refused
from agents.undoing import take_back
from goals.models import Goal
from memory.models import AgentRun, Author, Note, RunStatus, Thread
from memory.notes import create_note, update_note
from tests.factories import GoalFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.world import World
from tools import trust
from tools.models import AgentAction, Approval, ApprovalState, Trust
from tools.trust import Scope

type Say = Callable[[str], AgentRun]

APPROVED, REJECTED = ApprovalState.APPROVED, ApprovalState.REJECTED


@pytest.fixture
def note(goal: Goal) -> Note:
    """The agent's own, which it may change only when its user says so."""
    Goal.objects.update(modes={"update_note": "ask"})
    return create_note(goal.thread, "Shoes", "blue", Author.AGENT)


def proposes(say: Say, llm: LLMServer, note: Note, body: str) -> AgentAction:
    llm.script([Reply(calls=[("update_note", {"id": str(note.pk), "body": body})]), Reply("It is done.")])
    say(f"Make it {body}")
    return AgentAction.objects.filter(tool="update_note").latest("created_at")


def decide(action: AgentAction, state: ApprovalState, rung: list[UUID], allow: Scope | None = None) -> None:
    decisions.decide(action, action.user, state, ProposedCall(action).shown, always=allow)
    while rung:
        jobs.run(str(rung.pop(0)))
    action.refresh_from_db()


def test_a_tool_that_a_person_wants_to_be_asked_about_asks(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note
) -> None:
    action = proposes(say, llm, note, "red")
    assert AgentRun.objects.get().status == RunStatus.WAITING_APPROVAL
    assert action.approval.cause == "chosen"
    decide(action, APPROVED, rung)
    note.refresh_from_db()
    assert (action.status, note.body) == ("done", "red")


def test_what_changed_since_it_was_shown_is_not_approved(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note
) -> None:
    action = proposes(say, llm, note, "red")
    seen = ProposedCall(action).shown
    update_note(note, body="green")
    with pytest.raises(Refused, match="not what you were shown"):
        decisions.decide(action, action.user, APPROVED, seen)
    assert ProposedCall(action).would is not None
    decide(action, APPROVED, rung)
    note.refresh_from_db()
    assert note.body == "red", "once it was looked at again"


def test_what_changes_between_approval_and_start_is_not_run(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note
) -> None:
    action = proposes(say, llm, note, "red")
    decisions.decide(action, action.user, APPROVED, ProposedCall(action).shown)
    update_note(note, body="green")
    while rung:
        jobs.run(str(rung.pop(0)))
    action.refresh_from_db()
    note.refresh_from_db()
    assert (action.status, note.body) == ("denied", "green")
    assert "was changed since the user approved it" in str(llm.requests[-1].body)


def test_a_person_changes_a_call_and_their_form_of_it_runs_once(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], world: World
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello"})]), Reply("I see."), Reply("It is sent.")])
    say("Write to them")
    action = AgentAction.objects.get()
    with pytest.raises(Refused, match="not valid"):
        decisions.edit(action, action.user, ProposedCall(action).shown, {"text": 5, "to": "all"})
    decisions.edit(action, action.user, ProposedCall(action).shown, {"text": "good morning"})
    with pytest.raises(Refused, match="rejected already"):
        decisions.edit(action, action.user, ProposedCall(action).shown, {"text": "good evening"})
    while rung:
        jobs.run(str(rung.pop(0)))
    assert world.texts("send_email") == ["good morning"]
    assert [*AgentAction.objects.order_by("position").values_list("status", flat=True)] == ["denied", "done"]
    assert "good morning" in str(llm.requests[-1].body), "its agent knows what ran"


def test_an_edit_that_changes_nothing_is_an_approval(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], world: World
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello"})]), Reply("It is sent.")])
    say("Write to them")
    action = AgentAction.objects.get()
    decisions.edit(action, action.user, ProposedCall(action).shown, {"text": "hello"})
    while rung:
        jobs.run(str(rung.pop(0)))
    assert world.texts("send_email") == ["hello"]
    assert Approval.objects.get().state == APPROVED


def earn(say: Say, llm: LLMServer, rung: list[UUID], note: Note, times: int = 2) -> None:
    for number in range(times):
        decide(proposes(say, llm, note, f"form {number}"), APPROVED, rung)


def asks(say: Say, llm: LLMServer, note: Note, body: str) -> bool:
    return hasattr(proposes(say, llm, note, body), "approval")


def test_trust_is_earned_given_and_ends_with_one_undo(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note, settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 2
    earn(say, llm, rung, note, 1)
    assert not trust.offers(goal.user)
    action = proposes(say, llm, note, "not earned yet")
    with pytest.raises(Refused, match="cannot be allowed"):
        decisions.decide(action, goal.user, APPROVED, ProposedCall(action).shown, always=Scope.ANY)
    decide(action, APPROVED, rung)
    (offer,) = trust.offers(goal.user)
    assert (offer.thread, offer.tool, offer.times) == (goal.thread, "update_note", 2)
    trust.grant(goal.user, goal.thread, "update_note", None)
    assert not trust.offers(goal.user)
    assert not asks(say, llm, note, "without a word")
    note.refresh_from_db()
    assert note.body == "without a word"
    take_back(AgentAction.objects.filter(tool="update_note").latest("created_at"), goal.user)
    assert asks(say, llm, note, "after an undo")
    assert Trust.objects.get().why_revoked == "You undid what it did."


def test_a_rejection_ends_trust_and_what_was_earned(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note, settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 2
    earn(say, llm, rung, note)
    decide(proposes(say, llm, note, "exactly this"), APPROVED, rung, Scope.THESE)
    assert not asks(say, llm, note, "exactly this")
    action = proposes(say, llm, note, "something else")
    decide(action, REJECTED, rung)
    assert asks(say, llm, note, "exactly this")
    assert not trust.offers(goal.user)


def test_what_cannot_be_undone_is_trusted_in_one_form_only(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], world: World, settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 0
    llm.script([Reply(calls=[("send_email", {"text": "hello"})]), Reply("It is sent.")])
    say("Write to them")
    action = AgentAction.objects.get()
    assert list(trust.Earned(goal.user_id).scopes(action.approval)) == [Scope.THESE]
    decide(action, APPROVED, rung, Scope.THESE)
    llm.script([Reply(calls=[("send_email", {"text": "hello"})]), Reply("It is sent.")])
    say("Again")
    assert world.texts("send_email") == ["hello"] * 2
    llm.script([Reply(calls=[("send_email", {"text": "bye"})])])
    assert say("And say bye").status == RunStatus.WAITING_APPROVAL
    assert not trust.offers(goal.user)


@pytest.mark.parametrize("why", ["a stranger may speak", "it is over", "it is another goal"])
def test_trust_does_not_hold_when(why: str, goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note) -> None:
    where = GoalFactory(user=goal.user).thread if why == "it is another goal" else goal.thread
    trust.grant(goal.user, where, "update_note", None)
    if why == "it is over":
        Trust.objects.update(until=timezone.now() - timedelta(seconds=1))
    if why == "a stranger may speak":
        Thread.objects.update(sources=["stranger.example"])
        Note.objects.update(author=Author.USER)
    assert asks(say, llm, note, "red")


def test_the_inbox_shows_what_waits_and_takes_decisions(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note, client: Client, settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 1
    client.force_login(goal.user)
    action = proposes(say, llm, note, "red")
    page = client.get("/approvals/").content.decode()
    assert "<del>blue</del>" in page
    assert "<ins>red</ins>" in page
    approve = f"/approvals/{action.pk}/{ProposedCall(action).shown}/approve"
    assert approve in page
    assert client.post(approve, {"next": "/approvals/"}).headers["Location"] == "/approvals/"
    while rung:
        jobs.run(str(rung.pop(0)))
    page = client.get("/approvals/").content.decode()
    assert "Nothing waits for you." in page
    assert "Trust you could give" in page
    client.post(f"/approvals/trust/{goal.thread_id}/update_note/")
    assert "Runs without asking" in client.get("/approvals/").content.decode()
    client.post(f"/approvals/trusted/{Trust.objects.get().pk}/withdraw/")
    assert Trust.objects.get().revoked_at
    stranger = Client()
    stranger.force_login(GoalFactory().user)
    assert stranger.post(f"/approvals/trusted/{Trust.objects.get().pk}/withdraw/").status_code == 404
    stranger.post(f"/approvals/trust/{goal.thread_id}/update_note/")
    assert Trust.objects.filter(revoked_at=None).count() == 0


def test_a_changed_form_is_sent_from_the_page(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], note: Note, client: Client
) -> None:
    client.force_login(goal.user)
    action = proposes(say, llm, note, "red")
    llm.script([Reply("I see."), Reply("Done.")])
    fields = {f"argument-{action.pk}-id": str(note.pk), f"argument-{action.pk}-body": "yellow\r\nand red"}
    client.post(f"/approvals/{action.pk}/{ProposedCall(action).shown}/edit", fields | {"next": "/approvals/"})
    while rung:
        jobs.run(str(rung.pop(0)))
    note.refresh_from_db()
    assert note.body == "yellow\nand red"
