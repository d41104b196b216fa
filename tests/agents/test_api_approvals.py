"""Deciding about calls over HTTP: the API of devices and the buttons of the page."""

import re
from uuid import UUID

import pytest
from django.test import Client

from agents.live.frames import partials
from agents.live.screen import whole
from memory.models import AgentRun, RunStatus, Thread, ThreadMessage
from tests.factories import AgentActionFactory, AgentRunFactory, ApprovalFactory, ThreadMessageFactory, bearer
from tests.rewriting import rewriting
from tools.models import AgentAction, Approval

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("rung")]


@pytest.fixture
def approval() -> Approval:
    """A call in the chat of a run that waits for it."""
    run = AgentRunFactory(status=RunStatus.WAITING_APPROVAL)
    Thread.objects.update(live_run=run.pk)
    ThreadMessageFactory(thread=run.thread, run=run, content="Note that, please")
    action = AgentActionFactory(run=run, status="intent", risk="restricted", arguments={"title": "Shoes", "body": "x"})
    ThreadMessageFactory(
        thread=run.thread, run=run, source="agent", message_type="tool", content="", metadata={"action": str(action.pk)}
    )
    found: Approval = ApprovalFactory(action=action)
    return found


def post(approval: Approval, name: str, body: dict[str, str]) -> tuple[int, dict[str, object]]:
    answer = Client().post(f"/api/v1/{name}", body, content_type="application/json", headers=bearer(approval.user))
    return answer.status_code, answer.json()


def page_of(approval: Approval) -> tuple[Client, str]:
    client = Client()
    client.force_login(approval.user)
    goal = approval.thread.goals_goal
    return client, client.get(f"/goals/{goal.pk}/").content.decode()


def test_what_waits_is_listed_and_approved_with_the_hash_that_was_shown(approval: Approval, rung: list[UUID]) -> None:
    listed = Client().get("/api/v1/approvals?state=requested", headers=bearer(approval.user)).json()["results"]
    assert [(each["tool"], each["arguments"]["title"], each["cause"]) for each in listed] == [
        ("create_note", "Shoes", "restricted")
    ]
    path = f"approvals/{approval.pk}/decide"
    assert post(approval, path, {"decision": "approve", "hash": "0" * 64})[1]["error"]["code"] == "changed"  # type: ignore[index]
    status, answer = post(approval, path, {"decision": "approve", "hash": listed[0]["hash"]})
    assert (status, answer["state"]) == (200, "approved")
    assert post(approval, path, {"decision": "approve", "hash": listed[0]["hash"]})[0] == 200
    status, answer = post(approval, path, {"decision": "reject", "hash": listed[0]["hash"]})
    assert (status, answer["error"]["code"]) == (400, "decided")  # type: ignore[index]
    run = AgentRun.objects.get()
    assert (run.status, rung) == (RunStatus.QUEUED, [run.pk])


def test_an_unknown_outcome_is_settled_over_the_api(approval: Approval, rung: list[UUID]) -> None:
    action = AgentActionFactory(run=approval.action.run, status="unknown", effect="non_idempotent")
    path = f"actions/{action.pk}/resolve"
    assert post(approval, path, {"resolution": "check"})[1]["error"]["code"] == "not_verifiable"  # type: ignore[index]
    status, answer = post(approval, path, {"resolution": "happened"})
    assert (status, answer["status"], answer["resolution"]) == (200, "done", "happened")
    assert post(approval, path, {"resolution": "run_again"})[0] == 400


def test_the_card_in_the_chat_shows_what_would_happen_and_its_button_approves(approval: Approval) -> None:
    client, page = page_of(approval)
    assert "Needs your approval:" in page
    assert "Create a note “Shoes”" in page
    (approve,) = re.findall(r'formaction="([^"]*/approve)"', page)
    assert client.post(approve, {"next": "/"}).status_code == 302
    approval.refresh_from_db()
    assert approval.state == "approved"
    assert "/approve" not in page_of(approval)[1]


def test_a_rejection_in_the_chat_says_why_also_without_script(approval: Approval) -> None:
    client, page = page_of(approval)
    (reject,) = re.findall(r'formaction="([^"]*/reject)"', page)
    (field,) = re.findall(r'<textarea[^>]* name="(reason-[^"]*)"', page)
    assert client.post(reject, {"next": "/", field: "Brown ones ", "reason-other": "no"}).status_code == 302
    approval.refresh_from_db()
    assert (approval.state, approval.reason) == ("rejected", "Brown ones")


def test_a_stale_page_is_told_what_has_been_decided(approval: Approval) -> None:
    client, page = page_of(approval)
    (reject,) = re.findall(r'formaction="([^"]*/reject)"', page)
    Approval.objects.update(state="approved")
    answer = client.post(reject, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert "approved already" in answer.content.decode()
    assert client.post(reject.replace("reject", "perhaps")).status_code == 404


def test_the_decision_of_somebody_else_is_about_nothing(approval: Approval) -> None:
    _, page = page_of(approval)
    (approve,) = re.findall(r'formaction="([^"]*/approve)"', page)
    stranger = Client()
    stranger.force_login(ApprovalFactory().user)
    assert stranger.post(approve).status_code == 404
    approval.refresh_from_db()
    assert approval.state == "requested"


def test_an_unknown_call_asks_what_became_of_it_and_takes_the_answer(approval: Approval) -> None:
    with rewriting():
        AgentAction.objects.filter(pk=approval.pk).update(status="unknown", effect="verifiable", error="It may have.")
    client, page = page_of(approval)
    assert "It may have." in page
    found = re.findall(r'formaction="[^"]*/resolve/([^"]*)"', page)
    assert found == ["checked", "happened", "run_again"]
    answer = client.post(f"/actions/{approval.pk}/resolve/happened", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "/resolve/" not in answer.content.decode()
    assert ThreadMessage.objects.filter(content__startswith="It happened").exists()


def test_what_a_button_answers_is_what_a_reload_shows(approval: Approval) -> None:
    client, page = page_of(approval)
    (approve,) = re.findall(r'formaction="([^"]*/approve)"', page)
    answer = client.post(approve, headers={"HX-Request": "true"}).content.decode()
    assert answer == partials(whole(approval.thread))
