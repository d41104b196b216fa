"""Pages around goals, through the browser's door: a signed-in client and forms."""

import re
from collections.abc import Iterable
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from agents.budgets.models import Budget, Window
from agents.budgets.services import set_budget
from agents.models import DeviceToken, ModelConnection
from agents.services import assistant_of
from goals.models import Goal
from memory.ids import new_id
from memory.models import AgentRun, Note, RunStatus, Source, Thread, ThreadMessage
from tests.factories import (
    AgentRunFactory,
    AgentTaskFactory,
    ApprovalFactory,
    DeviceTokenFactory,
    GoalFactory,
    ModelConnectionFactory,
    NoteFactory,
    ThreadMessageFactory,
    UserFactory,
)
from tests.llm_server import LLMServer, Reply, Status

pytestmark = pytest.mark.django_db
XSS = "<img src=x onerror=alert(1)>"


@pytest.fixture
def user() -> User:
    person = UserFactory.create(first_name="Ines", is_staff=True)
    agent = assistant_of(person)
    agent.welcomed = True
    agent.save()
    return person


PAGES = ["/", "/notes/", "/notes/new/", "/activity/", "/jobs/", "/settings/", "/settings/models/", "/settings/devices/"]
PAGES += ["/settings/budget/"]
PAGES += ["/settings/appearance/", "/settings/costs/", "/goals/new/", "/welcome/", "/welcome/goal/", "/assistant/"]


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_led_to_sign_in(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("path", PAGES)
def test_each_page_opens_and_has_one_heading_and_one_main(client: Client, path: str) -> None:
    answer = client.get(path)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert len(re.findall(r"<h1[ >]", page)) == 1
    assert len(re.findall(r"<main[ >]", page)) == 1
    assert "no-store" in answer["Cache-Control"]
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_home_leads_a_new_person_through_the_first_run(client: Client, user: User) -> None:
    agent = assistant_of(user)
    agent.welcomed = False
    agent.save()
    assert client.get("/")["Location"] == "/welcome/"
    client.post("/welcome/skip/")
    assert client.get("/").status_code == 200


def test_the_first_run_connects_a_model_and_makes_a_goal(client: Client, user: User) -> None:
    assert client.post("/welcome/", {"kind": "demo"})["Location"] == "/welcome/goal/"
    assert ModelConnection.objects.get(user=user).is_default
    client.post("/welcome/goal/", {"title": "Run a half marathon in May", "description": ""})
    assert Goal.objects.get(user=user).title == "Run a half marathon in May"
    assert assistant_of(user).welcomed


def test_the_first_run_limits_what_a_month_may_cost(client: Client, user: User) -> None:
    assert 'value="20"' in client.get("/welcome/").text
    wrong = client.post("/welcome/", {"kind": "demo", "monthly": "a lot"})
    assert (wrong.status_code, ModelConnection.objects.filter(user=user).count()) == (422, 0)
    assert "Enter a number." in wrong.text
    assert 'value="a lot"' in wrong.text
    client.post("/welcome/", {"kind": "demo", "monthly": "7.50"})
    budget = Budget.objects.get(user=user)
    assert (budget.window, budget.thread, budget.money) == ("month", None, Decimal("7.50"))
    assert 'value="7.5' in client.get("/welcome/").text, "who goes back sees what holds"
    client.post("/welcome/", {"kind": "demo", "monthly": ""})
    assert not Budget.objects.filter(user=user).exists()


def test_the_first_run_adopts_the_time_zone_of_the_browser_once(client: Client, user: User) -> None:
    client.post("/welcome/skip/", {"time_zone": "Europe/Vienna"})
    client.post("/welcome/skip/", {"time_zone": "Asia/Tokyo"})
    assert assistant_of(user).time_zone == "Europe/Vienna"


def test_home_shows_the_latest_answer_of_each_agent_as_plain_text(client: Client, user: User) -> None:
    goal = GoalFactory.create(user=user, title="Vienna half marathon")
    ThreadMessageFactory.create(thread=goal.thread, source=Source.AGENT, content="An older answer.")
    ThreadMessageFactory.create(
        thread=goal.thread, source=Source.AGENT, content=f"# The plan\n\n{XSS} **three** days of rest."
    )
    ThreadMessageFactory.create(
        thread=goal.thread, source=Source.AGENT, content="only a thought", metadata={"interim": True}
    )
    page = client.get("/").content.decode()
    assert "The plan" in page
    assert "three days of rest." in page
    assert "older answer" not in page
    assert "only a thought" not in page
    assert XSS not in page


def test_home_asks_for_a_decision_only_when_a_run_failed(client: Client, user: User) -> None:
    goal = GoalFactory.create(user=user)
    assert "Needs you" not in client.get("/").content.decode()
    ThreadMessageFactory.create(
        thread=goal.thread, source=Source.ERROR, content="Refused.", metadata={"retryable": True}
    )
    assert "Needs you" in client.get("/").content.decode()
    ThreadMessageFactory.create(thread=goal.thread, source=Source.AGENT, content="All is well.")
    assert "Needs you" not in client.get("/").content.decode()


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("whose", ["goal", "assistant"])
def test_home_says_that_an_agent_waits_for_its_budget(client: Client, user: User, whose: str, more: bool) -> None:
    goal, budget = GoalFactory.create(user=user), set_budget(user, Window.MONTH, Decimal(1), None)
    thread = goal.thread if whose == "goal" else assistant_of(user).thread
    ThreadMessageFactory.create(thread=thread, source=Source.AGENT, content="A good answer to what was asked.")
    run = AgentRunFactory.create(thread=thread, status=RunStatus.WAITING_BUDGET)
    Thread.objects.filter(pk=thread.pk).update(live_run=run.pk)
    told = {"reason": "budget", "budget": str(budget.pk), "more": more}
    ThreadMessageFactory.create(thread=thread, run=run, source=Source.ERROR, content="All is spent.", metadata=told)
    ThreadMessageFactory.create(thread=thread, source=Source.USER, content="Are you there?")
    page = client.get("/").content.decode()
    assert "Needs you" in page
    assert "All is spent." in page
    assert ("Allow $1 more" in page) is more
    assert states(page) == ["done"], "the answer was a good one, and nobody is at work"


def test_home_names_what_waits_for_a_decision_and_leads_to_it(client: Client, user: User) -> None:
    goal = GoalFactory.create(user=user, title="Learn Go")
    task = AgentTaskFactory.create(parent=goal.thread)
    call = {"action__arguments": {"title": "Shoes", "body": "x"}, "action__reversal": "undoable"}
    asked = ApprovalFactory.create(action__run__thread=task.thread, **call)
    for _ in range(4):
        ApprovalFactory.create(action__run__thread=assistant_of(user).thread, **call)
    page = client.get("/").content.decode()
    needs = page.partition('id="needs-h"')[2].partition("</section>")[0]
    assert "Create a note “Shoes”</h3><p" in needs
    assert "Learn Go · Can be undone." in needs
    assert f'data-kind="primary" href="/approvals/#card-{asked.pk}"' in needs
    assert ('<span class="badge">5</span>' in needs, needs.count("</article>")) == (True, 3)
    names = re.findall(r'<span(?: dir="auto")?>([^<]+)</span><span class="badge">(\d+)', page)
    assert names == [("Approvals", "5"), ("Assistant", "4"), ("Learn Go", "1")]


def test_home_says_that_an_agent_was_stopped(client: Client, user: User) -> None:
    stopped = {"reason": "stopped"}
    ThreadMessageFactory.create(
        thread=GoalFactory.create(user=user).thread,
        source=Source.AGENT,
        content="Stopped by you. Nothing had been done yet.",
        metadata=stopped,
    )
    page = client.get("/").content.decode()
    assert '<h3 dir="auto">Stopped by you</h3>' in page
    assert states(page) == ["undone"]


def states(page: str) -> list[str]:
    return re.findall(r'class="step feed-item" data-state="(\w+)"', page)


def test_home_sums_what_this_month_cost(client: Client, user: User) -> None:
    goal = GoalFactory.create(user=user)
    AgentRunFactory.create(thread=goal.thread, cost=Decimal("1.25"))
    AgentRunFactory.create(thread=goal.thread, cost=Decimal("0.25"))
    AgentRunFactory.create(cost=Decimal("7.00"))
    page = client.get("/").content.decode()
    assert "$1.50" in page
    assert "$7.00" not in page


@pytest.mark.django_db(transaction=True)
def test_asking_from_home_goes_to_the_assistant_once(client: Client, user: User) -> None:
    sent = {"content": "hello", "client_message_id": "9b611e62-3bd8-4b49-8aa4-92123a2da00c"}
    first, second = client.post("/ask/", sent), client.post("/ask/", sent)
    assert first["Location"] == second["Location"] == f"/assistant/?sent={sent['client_message_id']}"
    assert ThreadMessage.objects.filter(thread=assistant_of(user).thread, source=Source.USER).count() == 1


def test_the_frame_asks_the_database_equally_often_for_one_goal_and_for_many(client: Client, user: User) -> None:
    AgentRunFactory.create(thread=GoalFactory.create(user=user).thread)
    with CaptureQueriesContext(connection) as one:
        client.get("/jobs/")
    for _ in range(8):
        AgentRunFactory.create(thread=GoalFactory.create(user=user).thread)
    with CaptureQueriesContext(connection) as many:
        client.get("/jobs/")
    assert len(many) == len(one)


def test_goals_are_made_changed_archived_and_deleted(client: Client, user: User) -> None:
    client.post("/goals/new/", {"title": "Learn Go", "description": "slowly"})
    goal = Goal.objects.get(user=user)
    client.post(f"/goals/{goal.pk}/settings/", {"title": "Learn Go well", "description": "", "model": ""})
    goal.refresh_from_db()
    assert (goal.title, goal.description) == ("Learn Go well", "")
    client.post(f"/goals/{goal.pk}/archive/")
    assert "Learn Go well" not in client.get("/jobs/").content.decode().split("toasts")[0]
    client.post(f"/goals/{goal.pk}/reopen/")
    client.post(f"/goals/{goal.pk}/delete/")
    assert not Goal.objects.filter(pk=goal.pk).exists()


def test_before_a_goal_is_deleted_its_page_counts_what_people_see(client: Client, user: User) -> None:
    thread = GoalFactory.create(user=user).thread
    ThreadMessageFactory.create_batch(2, thread=thread)
    ThreadMessageFactory.create(thread=thread, source=Source.AGENT)
    for metadata in ({"interim": True}, {"task": str(new_id())}, {"schedule": str(new_id())}):
        ThreadMessageFactory.create(thread=thread, source=Source.AGENT, metadata=metadata)
    ThreadMessageFactory.create(thread=thread, source=Source.AGENT, message_type="tool")
    NoteFactory.create(thread=thread, user=user)
    page = client.get(f"/goals/{thread.goals_goal.pk}/settings/").content.decode()
    assert "3 messages, 4 steps of its agent, 0 files, 1 note." in page


def test_a_goal_without_a_title_is_refused_and_what_was_typed_stays(client: Client) -> None:
    answer = client.post("/goals/new/", {"title": " ", "description": "keep me"})
    assert answer.status_code == 422
    assert "keep me" in answer.content.decode()


def test_a_goal_can_think_with_a_model_of_its_own_but_not_with_someone_elses(client: Client, user: User) -> None:
    goal, own, foreign = (
        GoalFactory.create(user=user),
        ModelConnectionFactory.create(user=user),
        ModelConnectionFactory.create(),
    )
    fields = {"title": goal.title, "description": ""}
    assert client.post(f"/goals/{goal.pk}/settings/", {**fields, "model": foreign.pk}).status_code == 422
    client.post(f"/goals/{goal.pk}/settings/", {**fields, "model": own.pk})
    goal.refresh_from_db()
    assert goal.model_connection == own


def test_notes_are_written_changed_found_and_deleted(client: Client, user: User) -> None:
    goal = GoalFactory.create(user=user)
    client.post("/notes/new/", {"title": "Shoes", "body": "old\r\npair", "goal": goal.pk})
    note = Note.objects.get(user=user)
    assert (note.thread, note.body) == (goal.thread, "old\npair")
    client.post(f"/notes/{note.pk}/", {"title": "Shoes", "body": "new pair"})
    assert "new pair" in client.get(f"/notes/{note.pk}/").content.decode()
    assert "No note has these words" in client.get("/notes/?q=bicycle").content.decode()
    assert "Shoes" in client.get("/notes/?q=pair").content.decode()
    client.post(f"/notes/{note.pk}/delete/")
    assert not Note.objects.exists()


def test_the_editor_saves_by_itself_and_says_when_it_cannot(client: Client, user: User) -> None:
    note = NoteFactory.create(user=user, thread=GoalFactory.create(user=user).thread, title="Plan")
    htmx = {"HX-Request": "true"}
    saved = client.post(f"/notes/{note.pk}/", {"title": "Plan", "body": "x"}, headers=htmx)
    assert 'hx-target="#note-saved"' in saved.content.decode()
    refused = client.post(f"/notes/{note.pk}/", {"title": " ", "body": "x"}, headers=htmx)
    assert refused.status_code == 422
    assert "A note needs a title." in refused.content.decode()


def test_a_note_and_its_preview_show_html_as_text(client: Client, user: User) -> None:
    note = NoteFactory.create(
        user=user, thread=GoalFactory.create(user=user).thread, title=XSS, body=f"{XSS} </textarea>{XSS}"
    )
    for page in (client.get("/notes/"), client.get(f"/notes/{note.pk}/")):
        assert XSS not in page.content.decode()
        assert f"</textarea>{XSS}" not in page.content.decode()
    assert XSS not in client.post("/notes/preview/", {"body": XSS}).content.decode()


def test_the_notes_of_a_goal_are_only_that_goals(client: Client, user: User) -> None:
    goal, other = GoalFactory.create(user=user), GoalFactory.create(user=user)
    NoteFactory.create(user=user, thread=goal.thread, title="Mine here")
    NoteFactory.create(user=user, thread=other.thread, title="Elsewhere")
    page = client.get(f"/goals/{goal.pk}/notes/").content.decode()
    assert "Mine here" in page
    assert "Elsewhere" not in page


@pytest.mark.django_db(transaction=True)
def test_jobs_are_listed_with_owner_state_and_cost_and_live_ones_can_be_stopped(client: Client, user: User) -> None:
    goal = GoalFactory.create(user=user, title="Move to Graz")
    AgentRunFactory.create(thread=goal.thread, status=RunStatus.FAILED, error="no answer", cost=Decimal("0.31"))
    live = AgentRunFactory.create(thread=goal.thread, status=RunStatus.QUEUED)
    page = client.get("/jobs/").content.decode()
    assert "Move to Graz" in page
    assert "no answer" in page
    assert "$0.31" in page
    assert f'action="/runs/{live.pk}/stop"' in page
    assert client.post(f"/runs/{live.pk}/stop", {"next": "/jobs/"})["Location"] == "/jobs/"
    assert AgentRun.objects.get(pk=live.pk).status == RunStatus.CANCELLING


def test_a_profile_is_saved_and_an_unknown_time_zone_refused(client: Client, user: User) -> None:
    client.post("/settings/", {"name": "Ines Moser", "time_zone": "Europe/Vienna"})
    user.refresh_from_db()
    assert (user.first_name, assistant_of(user).time_zone) == ("Ines Moser", "Europe/Vienna")
    assert client.post("/settings/", {"name": "", "time_zone": "Mars/Olympus"}).status_code == 422


def test_the_theme_is_rendered_by_the_server(client: Client) -> None:
    assert 'data-theme="system"' in client.get("/settings/").content.decode()
    client.post("/settings/appearance/", {"theme": "dark"})
    assert 'data-theme="dark"' in client.get("/settings/").content.decode()
    client.cookies["theme"] = '"><script>'
    assert 'data-theme="system"' in client.get("/settings/").content.decode()


def test_a_device_token_is_shown_once_and_can_be_revoked(client: Client, user: User) -> None:
    page = client.post("/settings/devices/", {"name": "Phone"}).content.decode()
    token = re.search(r"wm_[\w-]+", page)
    assert token
    assert token[0] not in client.get("/settings/devices/").content.decode()
    client.post(f"/settings/devices/{DeviceToken.objects.get(user=user).pk}/revoke/")
    assert not DeviceToken.objects.filter(user=user).exists()


def test_a_key_is_never_shown_again(client: Client, user: User) -> None:
    key = "sk-canary-0123456789-7Qx2"
    client.post("/settings/models/", {"kind": "openai", "openai-key": key, "openai-model": "gpt-5-mini"})
    page = client.get("/settings/models/").content.decode()
    assert "ends in 7Qx2" in page
    assert "canary" not in page
    assert "canary" not in ModelConnection.objects.get(user=user).sealed_key


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": "openai", "openai-model": "m"}, "needs an API key"),
        ({"kind": "compatible", "compatible-model": "m", "compatible-url": "ftp://x"}, "must start with http"),
        ({"kind": "compatible", "compatible-url": "http://llm.example/v1"}, "Nothing answers at http://llm.example/v1"),
        ({"kind": "compatible", "compatible-model": "m"}, "Which address does the server have?"),
        ({"kind": "compatible", "compatible-model": "m", "compatible-url": " "}, "Which address"),
        ({"kind": "nonsense"}, "Select a valid choice"),
        ({"kind": "ollama", "ollama-model": "m" * 201}, "is none"),
        ({"kind": "ollama", "ollama-model": "m", "ollama-url": "http://x/" + "a" * 500}, "is none"),
        ({"kind": "ollama", "ollama-model": "m", "ollama-url": "http://x/\r\nHost: y/"}, "is none"),
        ({"kind": "ollama", "ollama-model": "m\0"}, "is none"),
    ],
)
def test_a_connection_that_cannot_work_is_refused(client: Client, fields: dict[str, str], reason: str) -> None:
    saved = client.post("/settings/models/", fields)
    assert saved.status_code == 422
    assert not ModelConnection.objects.exists()
    tested = client.post("/settings/models/test/", fields)
    assert reason in said(tested)


def test_the_test_button_says_which_models_a_server_has(client: Client) -> None:
    with LLMServer() as server:
        server.pages["/v1/models"] = {"object": "list", "data": [{"id": "small"}, {"id": "large"}]}
        tested = client.post("/settings/models/test/", {"kind": "compatible", "compatible-url": server.url})
        assert "The server has: large, small." in said(tested)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("model", ["", "m"])
@pytest.mark.parametrize(
    "answer", [Status(404, body={"error": "no such page"}), Status(200, body={"error": "Unexpected endpoint"})]
)
def test_an_address_without_its_version_is_said_so(client: Client, user: User, model: str, answer: Status) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    with LLMServer() as server:
        server.pages["/models"] = answer.body
        if answer.code != 200:
            del server.pages["/models"]
        server.script([answer])
        given = {"kind": "compatible", "compatible-url": f"{server.address}/", "compatible-model": model}
        assert f"Try the address {server.address}/v1." in said(client.post("/settings/models/test/", given))


@pytest.mark.django_db(transaction=True)
def test_the_words_of_a_test_are_not_said_twice(client: Client, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    with LLMServer() as server:
        given = {"kind": "compatible", "compatible-url": server.url, "compatible-model": "m"}
        steps = {
            "This model cannot use tools, which agents need. m does not support tools.": 400,
            "The key is wrong: the server refused it. It is not ours.": 401,
            "The model&#x27;s server is overloaded or failing: oops.": 500,
        }
        for words, status in steps.items():
            message = words.rpartition(". ")[2] if status < 500 else "oops"
            server.script([Status(status, body={"error": {"message": message}})])
            assert f"</span> {words}</p>" in said(client.post("/settings/models/test/", given))


@pytest.mark.django_db(transaction=True)
def test_anthropic_is_tested_and_connected_with_a_key(client: Client, user: User) -> None:
    assert "Claude models" in client.get("/settings/models/").content.decode()
    assert "needs an API key" in said(client.post("/settings/models/test/", {"kind": "anthropic"}))
    with LLMServer() as server:
        fields = {"kind": "anthropic", "anthropic-url": server.url, "anthropic-key": "sk-ant-0123456789"}
        wrong = {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
        server.script([Status(401, body=wrong), Reply(calls=[("report_ready", {"ready": True})])])
        assert "The key is wrong" in said(client.post("/settings/models/test/", fields))
        assert "Tools work." in said(client.post("/settings/models/test/", fields))
        assert not server.violations
    client.post("/settings/models/", {"kind": "anthropic", "anthropic-key": "sk-ant-0123456789"})
    saved = ModelConnection.objects.get(user=user)
    assert (saved.kind, saved.base_url, saved.model) == ("anthropic", "https://api.anthropic.com", "claude-sonnet-5-5")


def said(answer: Iterable[bytes]) -> str:
    """What an answer says that may have come later."""
    return b"".join(answer).decode()


@pytest.mark.parametrize(("kind", "who"), [("ollama", "No Ollama"), ("compatible", "Nothing")])
def test_a_server_that_does_not_run_is_said_so(client: Client, user: User, kind: str, who: str) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    tested = client.post("/settings/models/test/", {"kind": kind, f"{kind}-url": "http://127.0.0.1:1/v1"})
    assert f"{who} answers at http://127.0.0.1:1/v1. Is it running?" in b"".join(tested).decode()


@pytest.mark.django_db(transaction=True)
def test_the_test_button_knocks_on_no_doors_inside_for_those_who_are_not_staff(client: Client, user: User) -> None:
    inside = ModelConnectionFactory.create(user=user, kind="compatible", base_url="http://127.0.0.1:9", sealed_key="")
    test = f"/settings/models/{inside.pk}/test/"
    assert "only staff" not in b"".join(client.post(test)).decode()
    User.objects.update(is_staff=False)
    assert "only staff" in b"".join(client.post(test)).decode()


def test_connections_can_be_made_default_and_removed(client: Client, user: User) -> None:
    first, second = ModelConnectionFactory.create(user=user, is_default=True), ModelConnectionFactory.create(user=user)
    client.post(f"/settings/models/{second.pk}/default/")
    first.refresh_from_db()
    assert not first.is_default
    client.post(f"/settings/models/{second.pk}/delete/")
    first.refresh_from_db()
    assert first.is_default


def test_objects_of_others_do_not_exist(client: Client) -> None:
    goal = GoalFactory.create()
    note = NoteFactory.create(thread=goal.thread)
    run = AgentRunFactory.create(thread=goal.thread, status=RunStatus.QUEUED)
    error = ThreadMessageFactory.create(thread=goal.thread, source=Source.ERROR, metadata={"retryable": True})
    connection, device = ModelConnectionFactory.create(user=goal.user), DeviceTokenFactory.create(user=goal.user)
    reads = [f"/goals/{goal.pk}/settings/", f"/goals/{goal.pk}/notes/", f"/notes/{note.pk}/"]
    writes = [f"/goals/{goal.pk}/{act}/" for act in ("settings", "archive", "reopen", "delete")]
    writes += [
        f"/notes/{note.pk}/",
        f"/notes/{note.pk}/delete/",
        f"/runs/{run.pk}/stop",
        f"/messages/{error.pk}/retry",
    ]
    writes += [f"/settings/models/{connection.pk}/{act}/" for act in ("test", "default", "delete")]
    writes += [f"/settings/devices/{device.pk}/revoke/"]
    assert {path: client.get(path).status_code for path in reads} == dict.fromkeys(reads, 404)
    assert {path: client.post(path).status_code for path in writes} == dict.fromkeys(writes, 404)
    planted = client.post("/notes/new/", {"title": "x", "body": "", "goal": goal.pk})
    assert planted.status_code == 404
    for page in ("/", "/notes/", "/jobs/"):
        assert goal.title not in client.get(page).content.decode()


def test_the_style_guide_is_for_developers_only(client: Client, settings: Settings) -> None:
    assert client.get("/styleguide/").status_code == 404
    settings.DEBUG = True
    assert client.get("/styleguide/").status_code == 200
