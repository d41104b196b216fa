"""The pages of conversations, with and without htmx, for their owners only."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from agents.connecting import Given, connect_model
from agents.engine import jobs
from agents.models import CallStatus, UserAgent
from agents.providers.capabilities import Capabilities
from agents.services import assistant_of
from goals.models import Goal
from memory.models import AgentRun, RunStatus, Source, Thread, ThreadMessage
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    GoalFactory,
    ModelCallFactory,
    NoteFactory,
    ThreadMessageFactory,
)

pytestmark = pytest.mark.django_db(transaction=True)
HTMX = {"HX-Request": "true"}


@pytest.fixture
def goal() -> Goal:
    return GoalFactory(title="Vienna half marathon")


@pytest.fixture
def owner(client: Client, goal: Goal) -> Client:
    client.force_login(goal.user)
    UserAgent.objects.update(welcomed=True)
    return client


def messages_url(goal: Goal) -> str:
    return f"/threads/{goal.thread_id}/messages"


def test_a_goals_page_shows_its_conversation_and_what_it_has_come_to(owner: Client, goal: Goal) -> None:
    ThreadMessageFactory(thread=goal.thread, run=AgentRunFactory(thread=goal.thread), content="Hello?")
    NoteFactory(thread=goal.thread, title="Race day checklist")
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    for expected in ("Vienna half marathon", "Hello?", "Race day checklist", f"/ws/threads/{goal.thread_id}/"):
        assert expected in page
    assert 'data-last-seq="' in page
    assert "Nothing said yet" not in page


def test_an_empty_conversation_suggests_what_to_say(owner: Client, goal: Goal) -> None:
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    assert "Nothing said yet" in page
    assert 'value="Create a note about what I need for a half marathon in May"' in page


def test_the_assistant_has_a_page_with_a_panel_of_its_own(owner: Client) -> None:
    page = owner.get("/assistant/").text
    assert 'class="composer"' in page
    assert 'popovertarget="panel"' in page
    assert "About your assistant" in page
    assert "Goal settings" not in page
    assert 'id="panel-files"' not in page


def test_a_message_sent_by_script_brings_its_turn(owner: Client, goal: Goal) -> None:
    client_id = uuid4()
    answer = owner.post(messages_url(goal), {"content": "Hi\r\nthere", "client_message_id": client_id}, headers=HTMX)
    message = ThreadMessage.objects.get(thread=goal.thread)
    assert (message.content, message.client_message_id) == ("Hi\nthere", client_id)
    body = answer.content.decode()
    assert body.startswith("<hx-partial ")
    assert f'hx-target="#turns:not(:has(#turn-{message.pk}))" hx-swap="beforeend"' in body
    assert 'hx-target="#bar"' in body


def test_while_the_socket_writes_the_page_an_answer_only_adds_what_is_not_there(owner: Client, goal: Goal) -> None:
    live = {**HTMX, "X-Live": "1"}
    body = owner.post(messages_url(goal), {"content": "Hi"}, headers=live).content.decode()
    message = ThreadMessage.objects.get(thread=goal.thread)
    assert f'hx-target="#turns:not(:has(#turn-{message.pk}))"' in body
    assert f'hx-target="#turn-{message.pk}"' not in body
    assert 'hx-target="#bar"' not in body
    run = AgentRun.objects.get(thread=goal.thread)
    assert owner.post(f"/runs/{run.pk}/stop", headers=live).content == b""


def test_a_message_sent_by_a_plain_form_leads_back_to_the_page(owner: Client, goal: Goal) -> None:
    client_id = uuid4()
    back = f"/goals/{goal.pk}/"
    answer = owner.post(messages_url(goal), {"content": "Hi", "client_message_id": client_id, "next": back})
    assert answer.status_code == 302
    assert answer["Location"] == f"{back}?sent={client_id}"
    assert "Hi" in owner.get(answer["Location"]).content.decode()


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_a_form_never_leads_to_another_site(owner: Client, goal: Goal, elsewhere: str) -> None:
    answer = owner.post(messages_url(goal), {"content": "Hi", "next": elsewhere})
    assert answer["Location"].startswith("/?")


def test_the_same_message_sent_twice_is_stored_once(owner: Client, goal: Goal) -> None:
    sent = {"content": "Hi", "client_message_id": uuid4()}
    bodies = [owner.post(messages_url(goal), sent, headers=HTMX).content for _ in range(2)]
    assert ThreadMessage.objects.filter(thread=goal.thread).count() == 1
    assert AgentRun.objects.filter(thread=goal.thread).count() == 1
    assert all(b'id="turn-' in body for body in bodies)


@pytest.mark.parametrize("content", ["", "  \n ", "x" * 101])
@override_settings(WAYMARK_MESSAGE_LENGTH=100)
def test_a_message_that_cannot_be_taken_comes_back_with_the_reason(owner: Client, goal: Goal, content: str) -> None:
    partial = owner.post(messages_url(goal), {"content": content}, headers=HTMX)
    assert partial.status_code == 422
    assert b'hx-target="#composer-note"' in partial.content
    page = owner.post(messages_url(goal), {"content": content})
    assert page.status_code == 422
    assert b'role="alert"' in page.content
    assert content in page.content.decode()
    assert not ThreadMessage.objects.filter(thread=goal.thread).exists()


def test_a_live_run_can_be_stopped_from_the_page(owner: Client, goal: Goal) -> None:
    owner.post(messages_url(goal), {"content": "Hi"}, headers=HTMX)
    run = AgentRun.objects.get(thread=goal.thread)
    assert f"/runs/{run.pk}/stop" in owner.get(f"/goals/{goal.pk}/").content.decode()
    answer = owner.post(f"/runs/{run.pk}/stop", headers=HTMX)
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLING
    assert b"data-stop disabled" in answer.content
    jobs.run(str(run.pk))
    assert "Stopped by you" in owner.get(f"/goals/{goal.pk}/").content.decode()


def waiting_run(goal: Goal) -> AgentRun:
    """A run that waits for its model, with the message that says so."""
    soon = timezone.now() + timedelta(seconds=40)
    run: AgentRun = AgentRunFactory(thread=goal.thread, status=RunStatus.RETRY_WAIT, due_at=soon)
    Thread.objects.filter(pk=goal.thread_id).update(live_run=run.pk)
    ThreadMessageFactory(thread=goal.thread, run=run)
    about = {"attempt": 2, "of": 5, "next_at": soon.isoformat(), "reason": "error", "retryable": True}
    ThreadMessageFactory(thread=goal.thread, run=run, source=Source.ERROR, content="Overloaded.", metadata=about)
    return run


def test_a_run_that_waits_for_its_model_says_until_when_and_can_be_tried_now(owner: Client, goal: Goal) -> None:
    run = waiting_run(goal)
    assert run.due_at
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    assert "Overloaded." in page
    assert "(2 of 5)" in page
    assert f">at {run.due_at:%H:%M:%S}</time>" in page, "a time, for those without script"
    assert f'formaction="/runs/{run.pk}/retry"' in page
    assert "data-retry" not in page

    answer = owner.post(f"/runs/{run.pk}/retry", headers=HTMX).content.decode()

    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
    assert "data-until" not in answer, "the countdown is gone once the run goes on"
    assert "Waited for the model" in answer
    assert owner.post(f"/runs/{run.pk}/retry").status_code == 302


def test_a_failed_run_can_be_tried_again_from_the_page(owner: Client, goal: Goal) -> None:
    failed = AgentRunFactory(thread=goal.thread, status=RunStatus.FAILED)
    ThreadMessageFactory(thread=goal.thread, run=failed)
    error = ThreadMessageFactory(
        thread=goal.thread, run=failed, source=Source.ERROR, content="Down", metadata={"retryable": True}
    )
    answer = owner.post(f"/messages/{error.pk}/retry", headers=HTMX)
    assert answer.status_code == 200
    assert AgentRun.objects.live().filter(thread=goal.thread).exists()
    final = ThreadMessageFactory(thread=goal.thread, run=failed, source=Source.ERROR, metadata={"retryable": False})
    assert owner.post(f"/messages/{final.pk}/retry", headers=HTMX).status_code == 422
    back = owner.post(f"/messages/{final.pk}/retry", {"next": "/jobs/"}, follow=True)
    assert back.redirect_chain == [("/jobs/", 302)]
    assert "This cannot be tried again." in back.content.decode()


def test_a_page_without_a_socket_can_ask_for_what_it_missed(owner: Client, goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread)
    first, second = (ThreadMessageFactory(thread=goal.thread, run=run) for _ in range(2))
    late = ThreadMessageFactory(thread=goal.thread, run=run, source=Source.AGENT, content="The late answer")
    body = owner.get(f"/threads/{goal.thread_id}/turns?after={first.pk}", headers=HTMX).content.decode()
    for expected in (f"turn-{first.pk}", f"turn-{second.pk}", late.content, 'hx-target="#bar"'):
        assert expected in body


def test_details_of_a_call_are_fetched_when_they_are_wanted(owner: Client, goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread)
    action = AgentActionFactory(run=run, arguments={"title": "<b>Shoes</b>"}, output="The note was created.")
    partial = owner.get(f"/actions/{action.pk}/", headers=HTMX).content.decode()
    assert "&lt;b&gt;Shoes&lt;/b&gt;" in partial
    assert "The note was created." in partial
    assert "<html" not in partial
    assert "<html" in owner.get(f"/actions/{action.pk}/").content.decode()


def test_what_belongs_to_others_does_not_exist(owner: Client, goal: Goal) -> None:
    theirs = GoalFactory()
    run = AgentRunFactory(thread=theirs.thread, status=RunStatus.RUNNING)
    message = ThreadMessageFactory(thread=theirs.thread, run=run, source=Source.ERROR, metadata={"retryable": True})
    action = AgentActionFactory(run=run)
    assistant = assistant_of(theirs.user)
    for path in (
        f"/goals/{theirs.pk}/",
        f"/threads/{theirs.thread_id}/turns",
        f"/threads/{assistant.thread_id}/turns?before={message.pk}",
        f"/actions/{action.pk}/",
    ):
        assert owner.get(path).status_code == 404
    writes = (f"/runs/{run.pk}/stop", f"/runs/{run.pk}/retry", f"/messages/{message.pk}/retry")
    for path in (f"/threads/{theirs.thread_id}/messages", *writes):
        assert owner.post(path, {"content": "Hi"}).status_code == 404
    mine = owner.get(f"/threads/{goal.thread_id}/turns?after={message.pk}").content.decode()
    assert str(message.pk) not in mine


def test_nobody_gets_in_without_signing_in(client: Client, goal: Goal) -> None:
    for path in (f"/goals/{goal.pk}/", "/assistant/", f"/threads/{goal.thread_id}/turns", "/sidebar/"):
        answer = client.get(path)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/login/")


def test_buttons_need_a_token_against_forgery(goal: Goal) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(goal.user)
    assert strict.post(messages_url(goal), {"content": "Hi"}).status_code == 403


def test_the_sidebar_alone_knows_where_it_stands(owner: Client, goal: Goal) -> None:
    headers = {"HX-Current-URL": f"http://testserver/goals/{goal.pk}/?x=1"}
    sidebar = owner.get("/sidebar/", headers=headers).content.decode()
    here = sidebar.index('aria-current="page"')
    assert sidebar.rindex(f"/goals/{goal.pk}/", 0, here) > 0
    assert owner.get("/sidebar/", headers={"HX-Current-URL": "http://[bad"}).status_code == 200
    for section in ("approvals", "activity", "jobs", "search"):
        bars = owner.get("/sidebar/", headers={"HX-Current-URL": f"http://testserver/{section}/"}).content.decode()
        current = re.findall(r'href="([^"]*)" aria-current="page"', bars)
        assert set(current) == {f"/{section}/"}


def test_pages_forbid_inline_scripts_and_styles(owner: Client, goal: Goal) -> None:
    page = owner.get(f"/goals/{goal.pk}/")
    assert "script-src 'self'" in page["Content-Security-Policy"]
    body = page.content.decode()
    for forbidden in (" style=", "<style", "hx-on", "javascript:", "<script>"):
        assert forbidden not in body


@pytest.mark.parametrize(
    ("sees", "width", "told"), [(False, 640, True), (True, 640, False), (None, 640, False), (False, None, False)]
)
def test_a_picture_that_the_model_was_not_shown_is_marked(
    owner: Client, goal: Goal, sees: bool | None, width: int | None, told: bool
) -> None:
    given = Given("qwen3:14b", "http://127.0.0.1:9/v1", corrections=Capabilities(images=sees))
    connect_model(goal.user, "ollama", given)
    run = AgentRunFactory(thread=goal.thread)
    file = {"id": str(uuid4()), "name": "hill", "media_type": "image/png", "size": 9, "width": width, "height": width}
    asked = {"attachments": [file]}
    ThreadMessageFactory(thread=goal.thread, run=run, source=Source.USER, content="What is it?", metadata=asked)
    ThreadMessageFactory(thread=goal.thread, run=run, source=Source.AGENT, content="A hill, surely.")
    ModelCallFactory(run=run, provider="ollama", model="qwen3:14b")
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    assert ("Not shown to qwen3:14b, which cannot see pictures." in page) is told


def test_an_answer_says_which_model_gave_it(owner: Client, goal: Goal) -> None:
    for calls in ([("openai", "gpt-5-mini"), ("ollama", "qwen3:14b")], [("demo", "demo")]):
        run = AgentRunFactory(thread=goal.thread)
        ThreadMessageFactory(thread=goal.thread, run=run, source=Source.USER, content="Hello?")
        ThreadMessageFactory(thread=goal.thread, run=run, source=Source.AGENT, content="Hello.")
        for at, (kind, model) in enumerate(calls):
            ModelCallFactory(run=run, step=at, provider=kind, model=model)
        ModelCallFactory(run=run, step=9, provider="openai", model="gpt-5.1", status=CallStatus.FAILED)
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    assert re.findall(r' · <span dir="auto">(.*?)</span></span>', page) == ["qwen3:14b"], "who answered in the end"
