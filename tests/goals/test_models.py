"""The pages of models: what is connected, how it is tested and changed, and who does what."""

import html
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connections as database
from django.test import Client

from agents import connecting
from agents.connecting import Given, connect_model
from agents.connections import choice_of
from agents.models import ModelConnection
from agents.providers.base import Routing
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import known_kinds
from agents.providers.known_models import known
from agents.services import assistant_of
from goals.models import Goal
from goals.views import model_tests, models
from memory.secrets import unseal
from tests.factories import GoalFactory, UserFactory, bearer
from tests.llm_ollama import LocalModel, OllamaServer
from tests.llm_openrouter import OpenRouterServer
from tests.llm_script import Raw, Reply, Status, event
from tests.llm_server import LLMServer

pytestmark = pytest.mark.django_db(transaction=True)
READY = Reply(calls=[("report_ready", {"ready": True})])
KEY = "sk-canary-0123456789-7Qx2"
ODD_ENCODINGS = ("hex", "bz2", "rot13", "idna", "undefined", "utf-16", "no-such")
NO_TOOLS = Capabilities(tools=False)


@pytest.fixture
def user() -> User:
    person: User = UserFactory.create(first_name="Ines", is_staff=True)
    assistant_of(person)
    return person


def connection(user: User, model: str = "m", kind: str = "compatible", **facts: Any) -> ModelConnection:
    return connect_model(user, kind, Given(model, "http://127.0.0.1:9/v1", **facts))


def said(answer: Iterable[bytes]) -> str:
    return b"".join(answer).decode()


def fields(client: Client, row: ModelConnection) -> dict[str, str]:
    """The form of a connection as its page holds it."""
    page = client.get(f"/settings/models/{row.pk}/").content.decode()
    values = re.findall(r'<input type="(?:text|url|number)" name="(\w+)"(?: value="([^"]*)")?', page)
    return dict(values)


def test_what_the_server_says_is_kept_when_a_connection_is_saved(client: Client, user: User) -> None:
    with OllamaServer() as server:
        server.models = {"m": LocalModel(["completion", "tools", "vision"], num_ctx=32_768)}
        client.post("/settings/models/", {"kind": "ollama", "ollama-url": server.url, "ollama-model": "m"})
    can = ModelConnection.objects.get(user=user).capabilities
    assert (can.tools, can.images, can.context_length) == (True, True, 32_768)
    page = client.get("/settings/models/").content.decode()
    assert "32,768 tokens" in page


@pytest.mark.parametrize("where", ["/settings/models/", "/welcome/"])
def test_a_model_without_tools_is_not_taken_for_agents(client: Client, user: User, where: str) -> None:
    with OllamaServer() as server:
        server.models = {"m": LocalModel(["completion"])}
        given = {"kind": "ollama", "ollama-url": server.url, "ollama-model": "m"}
        answer = client.post(where, given)
        assert answer.status_code == 422
        assert "cannot use tools, which agents need" in answer.content.decode()
        assert not ModelConnection.objects.exists()
        assert client.post("/settings/models/", given | {"only_save": "1"}).status_code == 302
    kept = ModelConnection.objects.get()
    assert not kept.is_default
    assert "no tools: summaries only" in client.get("/settings/models/").content.decode()
    client.post(f"/settings/models/{kept.pk}/default/")
    assert not ModelConnection.objects.filter(is_default=True).exists()


@pytest.mark.parametrize(
    ("step", "works", "tools", "words"),
    [
        (READY, True, True, "Tools work."),
        (Status(401, body={"error": {"message": f"bad {KEY}"}}), False, None, "The key is wrong"),
        (Status(404, body={"error": {"message": "model m not found"}}), False, None, "does not know the model"),
        (Status(400, body={"error": {"message": "m does not support tools"}}), False, False, "cannot use tools"),
    ],
)
def test_the_verdict_of_a_test_is_kept_with_the_connection(
    client: Client, user: User, llm: LLMServer, step: Reply | Status, works: bool, tools: bool | None, words: str
) -> None:
    row = connect_model(user, "compatible", Given("m", llm.url, KEY))
    llm.script([step])
    assert words in said(client.post(f"/settings/models/{row.pk}/test/"))
    row.refresh_from_db()
    assert (row.works, row.capabilities.tools) == (works, tools)
    assert row.tested_at is not None
    page = client.get("/settings/models/").content.decode()
    assert words in page
    assert "canary" not in page
    assert ("answered" if works else "failed") in summary_of(page, row)


def summary_of(page: str, row: ModelConnection) -> str:
    """The line of a connection that is seen before it is opened."""
    return re.findall(rf'id="connection-{row.pk}">(.*?)</(?:summary|hx-partial)>', page)[0]


def test_a_connection_says_how_it_is_before_it_is_opened(client: Client, user: User, llm: LLMServer) -> None:
    row = connect_model(user, "compatible", Given("m", llm.url, KEY))
    shown = summary_of(client.get("/settings/models/").content.decode(), row)
    assert "used for everything · not tested yet" in shown
    assert 'data-state="queued"' in shown, "nobody knows yet whether it works"
    llm.script([Status(401)])
    told = said(client.post(f"/settings/models/{row.pk}/test/", headers={"HX-Request": "true"}))
    assert f'hx-target="#connection-{row.pk}"' in told
    assert "failed just now" in told
    assert 'data-state="failed"' in told
    demo = connect_model(user, "demo", Given("demo"))
    page = client.get("/settings/models/").content.decode()
    assert "tested" not in summary_of(page, demo), "it has nothing that could fail"
    assert page.count("<dt>Images</dt>") == 1


def test_each_connection_can_be_tested_where_it_is_listed(client: Client, user: User, llm: LLMServer) -> None:
    for name in ("one", "two"):
        connect_model(user, "compatible", Given(name, llm.url, KEY))
    page = client.get("/settings/models/").content.decode()
    cards = re.findall(r'<details class="card provider"( open)?>', page)
    assert (cards, page.count('<button class="btn">Test</button>')) == ([" open", " open"], 2)


def test_a_test_that_fails_for_once_unlearns_nothing(client: Client, user: User, llm: LLMServer) -> None:
    row = connect_model(user, "compatible", Given("m", llm.url), Capabilities(images=True, context_length=9_000))
    llm.script([Status(500)])
    said(client.post(f"/settings/models/{row.pk}/test/"))
    row.refresh_from_db()
    assert row.learned == {"images": True, "context_length": 9_000}


@pytest.mark.parametrize(
    "step",
    [
        *[Status(400, {"Content-Type": f"text/plain; charset={name}"}, b"\xff no") for name in ODD_ENCODINGS],
        Raw([event({"error": {"message": "no", "code": "\N{SUPERSCRIPT TWO}"}})]),
        Raw([event({"error": {"message": "no", "code": "9" * 5_000}})]),
        Raw([b'data: {"error": {"message": "no", "code": ' + b"9" * 5_000 + b"}}\n\n"]),
    ],
)
def test_an_error_that_cannot_be_read_is_still_an_error(
    client: Client, user: User, llm: LLMServer, step: Status | Raw
) -> None:
    row = connect_model(user, "compatible", Given("m", llm.url))
    llm.script([step])
    page = said(client.post(f"/settings/models/{row.pk}/test/"))
    assert "The model" in page
    assert "inside Waymark" not in page
    row.refresh_from_db()
    assert row.works is False


@pytest.mark.parametrize("what", ["test_connection", "note_test"])
def test_a_test_that_we_fail_has_an_end_as_well(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError(what)

    row = connect_model(user, "demo", Given("demo"))
    with monkeypatch.context() as patch:
        patch.setattr(model_tests, what, fails)
        assert "Something went wrong inside Waymark" in said(client.post(f"/settings/models/{row.pk}/test/"))
    assert "always there" in said(client.post(f"/settings/models/{row.pk}/test/"))


def test_a_server_that_names_its_models_lets_one_be_chosen(client: Client, llm: LLMServer) -> None:
    llm.pages["/v1/models"] = {"data": [{"id": "<small>"}, {"id": "large"}]}
    page = said(client.post("/settings/models/test/", {"kind": "compatible", "compatible-url": llm.url}))
    assert '<hx-partial hx-target="#compatible-model-field"' in page
    assert '<option value="&lt;small&gt;">' in page
    llm.pages["/v1/models"] = {"object": "list", "data": [{"id": "m", "object": "model"}]}


def test_a_connection_is_named_and_its_key_is_replaced_but_never_shown(client: Client, user: User) -> None:
    row = connection(user, api_key=KEY)
    given = fields(client, row) | {"name": "The big one", "model": "m"}
    assert "api_key" not in given
    assert "canary" not in client.get(f"/settings/models/{row.pk}/").content.decode()
    assert client.post(f"/settings/models/{row.pk}/", given).status_code == 302
    row.refresh_from_db()
    assert (str(row), unseal(row.sealed_key)) == ("The big one", KEY)
    client.post(f"/settings/models/{row.pk}/", given | {"api_key": "another-key-0815"})
    row.refresh_from_db()
    assert (unseal(row.sealed_key), row.key_hint) == ("another-key-0815", "0815")


def test_a_stored_key_does_not_go_to_another_address(client: Client, user: User, llm: LLMServer) -> None:
    """Whoever sits at an open browser could otherwise have it sent to a server of their own."""
    row = connection(user, api_key=KEY)
    given = fields(client, row) | {"base_url": llm.url}
    answer = client.post(f"/settings/models/{row.pk}/", given)
    assert answer.status_code == 422
    assert "the key must be given again" in answer.content.decode()
    assert llm.requests == []
    assert client.post(f"/settings/models/{row.pk}/", given | {"api_key": "new-key"}).status_code == 302
    row.refresh_from_db()
    assert (row.base_url, unseal(row.sealed_key)) == (llm.url, "new-key")


def test_what_is_known_can_be_corrected_and_with_another_model_it_is_unlearned(client: Client, user: User) -> None:
    row = connect_model(user, "compatible", Given("m", "http://127.0.0.1:9/v1"), Capabilities(images=True, tools=True))
    given = fields(client, row) | {"tools": "", "images": "no", "context_length": "12000"}
    client.post(f"/settings/models/{row.pk}/", given)
    row.refresh_from_db()
    assert (row.capabilities.images, row.capabilities.tools, row.capabilities.context_length) == (False, True, 12_000)
    client.post(f"/settings/models/{row.pk}/", given | {"model": "another"})
    row.refresh_from_db()
    assert row.learned == {}
    assert row.capabilities.images is False, "what the user says, stays"


def test_a_default_cannot_be_said_to_lack_tools(client: Client, user: User) -> None:
    row = connection(user)
    answer = client.post(f"/settings/models/{row.pk}/", fields(client, row) | {"tools": "no"})
    assert answer.status_code == 422
    row.refresh_from_db()
    assert row.corrections == {}


def test_the_routing_of_openrouter_is_a_setting_of_its_connection(client: Client, user: User) -> None:
    row = connection(user, kind="openrouter", api_key=KEY)
    given = fields(client, row) | {
        "order": " azure,, openai ",
        "only_these": "on",
        "require_parameters": "on",
        "deny_training": "on",
        "title": "Waymark",
        "referer": "https://waymark.example/",
    }
    assert client.post(f"/settings/models/{row.pk}/", given).status_code == 302
    row.refresh_from_db()
    wanted = Routing(("azure", "openai"), True, True, True, "Waymark", "https://waymark.example/")
    assert row.routing == {**vars_of(wanted), "order": ["azure", "openai"]}
    assert fields(client, row)["order"] == "azure, openai"
    other = client.get(f"/settings/models/{connection(user).pk}/").content.decode()
    assert "Vendors to try first" not in other


@pytest.mark.parametrize("field", ["name", "order", "title", "base_url", "api_key", "model"])
def test_no_text_of_a_connection_begins_a_line_of_its_own(client: Client, user: User, field: str) -> None:
    row = connection(user, kind="openrouter", api_key=KEY)
    given = fields(client, row) | {field: "https://a.example\r\nX-Other: 1"}
    assert client.post(f"/settings/models/{row.pk}/", given).status_code == 422
    assert not ModelConnection.objects.exclude(routing__title="").exclude(routing={}).exists()


@pytest.mark.parametrize("page", ["/settings/models/", "/welcome/", "/settings/models/{}/"])
def test_one_user_does_not_hold_all_threads_with_servers_that_drip(
    client: Client, user: User, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    begun, stop = Event(), Event()

    def drips(*_: object) -> Capabilities:
        begun.set()
        assert stop.wait(20)
        return Capabilities()

    def save() -> int:
        try:
            return int(client.post(address, given).status_code)
        finally:
            database.close_all()

    row = connection(user)
    address = page.format(row.pk)
    given = {"kind": "compatible", "compatible-url": row.base_url, "compatible-model": "m"}
    given |= {"name": "", "base_url": row.base_url, "model": "m"}
    other = Client()
    other.force_login(UserFactory.create(is_staff=True))
    with ThreadPoolExecutor(1) as people, monkeypatch.context() as patch:
        patch.setattr(models, "learn", drips)
        first = people.submit(save)
        try:
            assert begun.wait(60)
            again = ["/settings/models/", "/welcome/", f"/settings/models/{row.pk}/", "/settings/models/test/"]
            assert [client.post(place, given).status_code for place in again] == [429] * 4
            assert client.get("/settings/models/").status_code == 200
            assert other.post("/settings/models/", {"kind": "compatible"}).status_code == 422
        finally:
            stop.set()
    assert first.result() == 302
    assert client.post(address, given).status_code == 302


def test_nobody_has_any_number_of_connections(client: Client, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "MOST_CONNECTIONS", 2)
    connection(user, "first")
    given = {"kind": "compatible", "compatible-url": "http://127.0.0.1:9/v1"}
    assert client.post("/settings/models/", given | {"compatible-model": "second"}).status_code == 302
    refused = client.post("/settings/models/", given | {"compatible-model": "third"})
    assert (refused.status_code, "as many connections as one may" in refused.content.decode()) == (422, True)
    assert client.post("/settings/models/", given | {"compatible-model": "second"}).status_code == 302


@pytest.mark.parametrize(
    ("staff", "url", "learned", "asked"),
    [
        (False, "", None, 16_384),
        (False, "", 32_768, 32_768),
        (False, "https://8.8.8.8/v1", None, 100_000_000),
        (True, "", None, 100_000_000),
    ],
)
def test_who_is_not_of_the_house_does_not_fill_its_memory(
    client: Client, user: User, staff: bool, url: str, learned: int | None, asked: int
) -> None:
    row = connect_model(user, "ollama", Given("m", url), Capabilities(context_length=learned))
    given = fields(client, row) | {"context_length": "100000000"}
    assert client.post(f"/settings/models/{row.pk}/", given).status_code == 302
    row.refresh_from_db()
    choice = choice_of(row, staff=staff)
    assert (choice.endpoint.window, choice.capabilities.context_length) == (asked, asked)


def vars_of(routing: Routing) -> dict[str, object]:
    return {name: getattr(routing, name) for name in Routing.__dataclass_fields__}


def test_who_does_what_is_chosen_on_one_page(client: Client, user: User) -> None:
    big, small = connection(user, "big"), connection(user, "small")
    given = {"default": big.pk, "summariser": small.pk, "stand_in": small.pk}
    assert client.post("/settings/models/uses/", given).status_code == 302
    agent = assistant_of(user)
    assert (agent.summariser, agent.stand_in) == (small, small)
    assert ModelConnection.objects.get(is_default=True) == big
    client.post("/settings/models/uses/", {"default": big.pk, "summariser": "", "stand_in": ""})
    agent.refresh_from_db()
    assert (agent.summariser, agent.stand_in) == (None, None)


@pytest.mark.parametrize("use", ["default", "stand_in"])
def test_a_model_without_tools_is_refused_where_agents_need_them(client: Client, user: User, use: str) -> None:
    big = connection(user, "big")
    mute = connect_model(user, "compatible", Given("mute", "http://127.0.0.1:9"), NO_TOOLS, default=False)
    given = {"default": big.pk, "summariser": mute.pk, "stand_in": ""} | {use: mute.pk}
    answer = client.post("/settings/models/uses/", given)
    assert answer.status_code == 422
    assert "mute (OpenAI-compatible server) cannot use tools" in answer.content.decode()
    assert ModelConnection.objects.get(is_default=True) == big
    assert assistant_of(user).summariser is None, "all of it or nothing"
    assert client.post("/settings/models/uses/", given | {use: big.pk}).status_code == 302
    assert assistant_of(user).summariser == mute


def test_models_of_others_cannot_be_chosen_nor_changed(client: Client, user: User) -> None:
    mine, theirs = connection(user), connection(UserFactory.create())
    assert client.get(f"/settings/models/{theirs.pk}/").status_code == 404
    assert client.post(f"/settings/models/{theirs.pk}/", {"model": "x"}).status_code == 404
    answer = client.post("/settings/models/uses/", {"default": mine.pk, "stand_in": theirs.pk})
    assert answer.status_code == 422
    assert assistant_of(user).stand_in is None


def test_the_page_of_a_goal_refuses_a_model_without_tools(client: Client, user: User) -> None:
    goal: Goal = GoalFactory(user=user, title="Move")
    connection(user, "big")
    mute = connect_model(user, "compatible", Given("mute", "http://127.0.0.1:9"), NO_TOOLS, default=False)
    assert "Your default: big (" in client.get(f"/goals/{goal.pk}/settings/").content.decode()
    answer = client.post(f"/goals/{goal.pk}/settings/", {"title": "Changed", "description": "", "model": mute.pk})
    assert answer.status_code == 422
    assert "cannot use tools" in answer.content.decode()
    goal.refresh_from_db()
    assert (goal.title, goal.model_connection) == ("Move", None)


def test_the_api_lists_models_and_sets_that_of_a_goal(user: User) -> None:
    api, goal = Client(headers=bearer(user)), GoalFactory(user=user)
    row = connect_model(user, "openai", Given("gpt-5-mini", "", KEY, "Big"))
    mute = connect_model(user, "compatible", Given("mute", "http://127.0.0.1:9"), NO_TOOLS, default=False)
    theirs = connection(UserFactory.create())
    listed = api.get("/api/v1/models").json()["results"]
    assert [each["id"] for each in listed] == [str(mute.pk), str(row.pk)]
    assert listed[1] | {"tested_at": None, "created_at": None} == {
        "id": str(row.pk),
        "name": "Big",
        "kind": "openai",
        "model": "gpt-5-mini",
        "is_default": True,
        "works": None,
        "tools": True,
        "images": True,
        "context_length": 400_000,
        "tested_at": None,
        "created_at": None,
    }
    path = f"/api/v1/goals/{goal.pk}"
    assert api.patch(path, {"model": str(row.pk)}, "application/json").json()["model"] == str(row.pk)
    refused = api.patch(path, {"model": str(mute.pk), "title": "Changed"}, "application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no_tools")
    foreign = api.patch(path, {"model": str(theirs.pk)}, "application/json").json()["error"]
    assert foreign["fields"] == {"model": ["You have no such model."]}
    kept = api.get(path).json()
    assert (kept["model"], kept["title"]) == (str(row.pk), goal.title)
    assert api.patch(path, {"model": None}, "application/json").json()["model"] is None


def test_openrouter_says_what_its_model_can(client: Client, user: User) -> None:
    with OpenRouterServer() as server:
        server.offer("vendor/model", images=True)
        row = connect_model(user, "openrouter", Given("vendor/model", server.url, KEY))
        server.script([READY])
        said(client.post(f"/settings/models/{row.pk}/test/"))
    row.refresh_from_db()
    assert row.learned == {
        "tools": True,
        "images": True,
        "thinking": False,
        "context_length": 200_000,
        "output_limit": 32_000,
    }


def test_the_table_knows_the_models_that_are_offered_and_their_snapshots() -> None:
    for kind in known_kinds():
        for model in kind.models if kind.needs_key else ():
            assert known(kind.kind, model).tools is True, model
            assert known(kind.kind, model).context_length, model
    assert known("openai", "gpt-5-mini-2025-08-07") == known("openai", "gpt-5-mini")
    assert known("anthropic", "claude-haiku-4-5-20251001").output_limit == 64_000
    assert known("compatible", "gpt-5-mini") == Capabilities()


def written(client: Client, where: str, given: dict[str, str]) -> dict[str, str]:
    """What the fields of a connection hold after a form was sent that could not be taken."""
    answer = client.post(where, given)
    assert answer.status_code == 422
    page = answer.content.decode()
    fields = dict(re.findall(r'<input class="input" id="[\w-]+" name="([\w-]+)"[^>]*? value="([^"]*)"', page))
    for name, options in re.findall(r'<select class="select" id="[\w-]+" name="([\w-]+)">(.*?)</select>', page):
        fields[name] = re.findall(r'<option value="([^"]*)" selected>', options)[0]
    return {name: value for name, value in fields.items() if name in given}


@pytest.mark.parametrize("where", ["/settings/models/", "/welcome/"])
@pytest.mark.parametrize(
    "given",
    [
        {
            "kind": "compatible",
            "compatible-url": "http://llm.example/v1",
            "compatible-key": KEY,
            "compatible-model": "",
        },
        {"kind": "compatible", "compatible-url": "llm.example", "compatible-key": KEY, "compatible-model": "<m>"},
        {"kind": "openai", "openai-key": "", "openai-model": "gpt-9"},
        {"kind": "nonsense", "openai-key": KEY, "openai-model": "gpt-9"},
    ],
)
def test_a_mistake_loses_nothing_that_was_written(client: Client, where: str, given: dict[str, str]) -> None:
    kept = {name: html.escape(value) for name, value in given.items() if name != "kind"}
    assert written(client, where, given) == kept


def test_a_limit_that_is_none_loses_nothing_that_was_written(client: Client) -> None:
    given = {"kind": "openai", "openai-key": KEY, "openai-model": "gpt-9", "monthly": "much"}
    assert written(client, "/welcome/", given) == {"openai-key": KEY, "openai-model": "gpt-9"}


def test_a_mistake_in_a_change_loses_no_key(client: Client, user: User) -> None:
    row = connection(user)
    given = fields(client, row) | {"api_key": KEY, "context_length": "-1"}
    assert f'value="{KEY}"' in client.post(f"/settings/models/{row.pk}/", given).content.decode()


def test_the_model_that_was_chosen_of_those_found_stays_chosen(
    client: Client, lives_at: Callable[[str, str], None]
) -> None:
    with OllamaServer() as server:
        lives_at("ollama", server.url)
        server.models = {"a": LocalModel(), "b": LocalModel(["completion"])}
        given = {"kind": "ollama", "ollama-model": "b"}
        assert written(client, "/welcome/", given) == {"ollama-model": "b"}


def offered(page: str) -> tuple[str, str]:
    """The kind that is chosen on a page with the form of a connection, and the model in its field."""
    kind = re.findall(r'name="kind" id="[\w-]+" value="(\w+)" checked', page)
    model = re.findall(rf'name="{kind[0]}-model" value="([^"]*)"', page)
    return kind[0], model[0] if model else ""


def test_the_way_back_to_the_first_page_shows_what_was_chosen(client: Client, user: User) -> None:
    given = {"kind": "openai", "openai-key": KEY, "openai-model": "gpt-9", "monthly": "12.5"}
    assert client.post("/welcome/", given).status_code == 302
    page = client.get("/welcome/").content.decode()
    assert offered(page) == ("openai", "gpt-9")
    assert 'name="monthly" value="12.5"' in page
    assert "canary" not in page
    assert client.post("/welcome/", given | {"openai-key": ""}).status_code == 302, "the key is stored"
    kept = ModelConnection.objects.get(user=user)
    assert (kept.is_default, unseal(kept.sealed_key)) == (True, KEY)


def test_a_limit_that_was_lifted_on_the_first_page_stays_lifted(client: Client) -> None:
    assert 'name="monthly" value="20"' in client.get("/welcome/").content.decode()
    client.post("/welcome/", {"kind": "demo", "monthly": ""})
    assert not re.search(r'name="monthly" value', client.get("/welcome/").content.decode())


@pytest.mark.parametrize(
    ("other", "count"),
    [
        ({}, 1),
        ({"compatible-key": ""}, 1),
        ({"compatible-key": "another-key-0815"}, 2),
        ({"compatible-model": "n"}, 2),
        ({"compatible-url": "http://127.0.0.1:8/v1"}, 2),
    ],
)
def test_the_same_connection_is_made_once(client: Client, user: User, other: dict[str, str], count: int) -> None:
    address = "http://127.0.0.1:9/v1"
    given = {"kind": "compatible", "compatible-url": address, "compatible-key": KEY, "compatible-model": "m"}
    client.post("/settings/models/", given)
    first = ModelConnection.objects.get(user=user)
    change = fields(client, first) | {"name": "The big one", "model": "m", "images": "no"}
    client.post(f"/settings/models/{first.pk}/", change)
    client.post("/settings/models/", given | other)
    assert ModelConnection.objects.filter(user=user).count() == count
    first.refresh_from_db()
    assert (first.name, first.capabilities.images, first.is_default) == ("The big one", False, count == 1)


def test_a_stored_key_is_not_sent_to_an_address_that_is_typed_in(client: Client, user: User, llm: LLMServer) -> None:
    connection(user, api_key=KEY)
    llm.script([READY])
    given = {"kind": "compatible", "compatible-url": llm.url, "compatible-model": "m"}
    verdict = said(client.post("/settings/models/test/", given))
    assert [KEY in str(request.headers) for request in llm.requests] == [False], verdict


@pytest.mark.parametrize("where", ["/settings/models/", "/welcome/"])
def test_a_test_before_a_connection_is_saved_is_kept_with_it(client: Client, llm: LLMServer, where: str) -> None:
    given = {"kind": "compatible", "compatible-url": llm.url, "compatible-model": "m", "compatible-key": KEY}
    llm.script([READY])
    assert "Tools work." in said(client.post("/settings/models/test/", given))
    client.post(where, given)
    kept = ModelConnection.objects.get()
    assert (kept.works, kept.capabilities.tools) == (True, True)
    page = client.get("/settings/models/").content.decode()
    assert "Tools work." in page
    assert not any(KEY in str(session.get_decoded()) for session in Session.objects.all())
    client.post(where, given | {"compatible-model": "n"})
    assert ModelConnection.objects.get(model="n").works is None, "it was the other that was tested"


def test_a_model_that_a_test_has_shown_to_lack_tools_is_not_taken(client: Client, llm: LLMServer) -> None:
    given = {"kind": "compatible", "compatible-url": llm.url, "compatible-model": "m"}
    llm.script([Status(400, body={"error": {"message": "m does not support tools"}})])
    said(client.post("/settings/models/test/", given))
    assert client.post("/settings/models/", given).status_code == 422
    assert not ModelConnection.objects.exists()


@pytest.mark.parametrize("where", ["/settings/models/", "/welcome/"])
@pytest.mark.parametrize("kind", ["openai", "anthropic", "ollama", "openrouter", "compatible"])
def test_every_kind_can_be_given_an_address_of_its_own(client: Client, where: str, kind: str) -> None:
    page = client.get(where).content.decode()
    assert re.search(rf'<input [^>]*name="{kind}-url"', page)
    key = {} if kind == "ollama" else {f"{kind}-key": KEY}
    given = {"kind": kind, f"{kind}-url": "http://127.0.0.1:9/v1", f"{kind}-model": "m"} | key
    assert client.post(where, given).status_code == 302
    assert ModelConnection.objects.get().base_url == "http://127.0.0.1:9/v1"
    assert client.post(where, given | {f"{kind}-url": "ftp://x"}).status_code == 422


def test_another_ollama_can_be_given_while_one_is_found(client: Client, lives_at: Callable[[str, str], None]) -> None:
    with OllamaServer() as here, OllamaServer() as there:
        lives_at("ollama", here.url)
        here.models, there.models = {"a": LocalModel()}, {"b": LocalModel()}
        page = client.get("/welcome/").content.decode()
        assert offered_url(page) == here.url
        given = {"kind": "ollama", "ollama-url": there.url, "ollama-model": ""}
        assert "The server has: b." in said(client.post("/settings/models/test/", given))
        assert client.post("/welcome/", given | {"ollama-model": "b"}).status_code == 302
        assert offered_url(client.get("/welcome/").content.decode()) == there.url
    assert ModelConnection.objects.get().model == "b"


def offered_url(page: str) -> str:
    return re.findall(r'name="ollama-url" type="url" value="([^"]*)"', page)[0]
