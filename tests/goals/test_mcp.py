"""MCP servers on their page and over the API: named, looked at, agreed to, switched off, removed."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any, cast

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape
from pytest_django import Settings

from agents.services import assistant_of
from memory.pool import orm
from tests.factories import UserFactory, bearer
from tests.mcp_server import FakeMcp, fake_mcp, says, tool
from tools.base import BrokeOff, ToolContext, ToolError
from tools.cancel import CancelToken
from tools.mcp import catalogue, loop, services, sessions
from tools.mcp.models import McpServer
from tools.mcp.offered import offered_to
from tools.mcp.program_list import programs_from
from tools.mcp.tool import Anything, McpTool
from tools.models import Trust

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fake(settings: Settings) -> Iterator[FakeMcp]:
    with fake_mcp() as served:
        settings.WAYMARK_FETCH_PRIVATE = [served.place]
        served.key = "Bearer canary"
        served.tools = [tool("look", "Look <b>up</b>."), tool("post", "Send it."), tool("odd", "", "oops")]
        yield served
        loop.submit(sessions.close_all()).result(10)


@pytest.fixture
def user() -> User:
    user: User = UserFactory()
    return user


@pytest.fixture
def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def added(browser: Client, fake: FakeMcp, name: str = "shop") -> McpServer:
    given = {"name": name, "url": fake.address, "headers": "Authorization: Bearer canary\n"}
    assert browser.post(reverse("settings_mcp"), given).status_code == 302
    return McpServer.objects.get(name=name)


def test_the_empty_page_says_what_a_server_is_good_for(browser: Client, fake: FakeMcp) -> None:
    example = "they can look into your issues and write new ones"
    assert example in browser.get(reverse("settings_mcp")).text
    added(browser, fake)
    assert example not in browser.get(reverse("settings_mcp")).text


@pytest.mark.parametrize("staff", [True, False])
@pytest.mark.parametrize("url", ["http://127.0.0.1/mcp", "http://127.0.0.1:8080/mcp"])
def test_who_runs_this_server_is_told_how_to_allow_an_address_inside(
    browser: Client, user: User, url: str, staff: bool
) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=staff)
    browser.post(reverse("settings_mcp"), {"name": "wiki", "url": url})
    page = browser.get(reverse("settings_mcp")).text
    assert McpServer.objects.get().error in unescape(page)
    assert ("WAYMARK_FETCH_PRIVATE" in page) is staff


def test_a_server_is_named_looked_at_and_agreed_to(browser: Client, fake: FakeMcp, user: User) -> None:
    server = added(browser, fake)
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert "Look &lt;b&gt;up&lt;/b&gt;." in page
    assert "Its arguments are not described by a JSON schema." in page
    assert "canary" not in page
    assert offered_to(user.pk) == {}
    chosen = {"digest": [each["digest"] for each in server.seen if each["name"] == "look"], "reads_only": ["look"]}
    browser.post(reverse("mcp_accept", args=[server.pk]), chosen)
    assert [(name, found.effect) for name, found in offered_to(user.pk).items()] == [("shop__look", "pure")]
    browser.post(reverse("mcp_switch", args=[server.pk]))
    assert offered_to(user.pk) == {}
    browser.post(reverse("mcp_switch", args=[server.pk]), {"on": "1"})
    assert len(offered_to(user.pk)) == 1
    browser.post(reverse("mcp_delete", args=[server.pk]))
    assert not McpServer.objects.exists()


def test_a_change_is_shown_and_ends_what_was_trusted(browser: Client, fake: FakeMcp, user: User) -> None:
    server = added(browser, fake)
    every = {"digest": [each["digest"] for each in server.seen if not each["problem"]]}
    browser.post(reverse("mcp_accept", args=[server.pk]), every)
    thread, until = assistant_of(user).thread, timezone.now() + timedelta(days=1)
    for name in ("shop__look", "shop__post"):
        Trust.objects.create(user=user, thread=thread, tool=name, until=until)
    fake.tools[1] = tool("post", "Send it, and all notes.")
    browser.post(reverse("mcp_check", args=[server.pk]))
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert "has changed" in page
    assert offered_to(user.pk) == {}
    server.refresh_from_db()
    browser.post(
        reverse("mcp_accept", args=[server.pk]),
        {"digest": [each["digest"] for each in server.seen if not each["problem"]]},
    )
    assert len(offered_to(user.pk)) == 2
    assert [trust.tool for trust in Trust.objects.filter(revoked_at=None)] == ["shop__look"]


def card(browser: Client) -> tuple[str, str]:
    """Of the only server: the state of its mark; whether it is closed, and its primary buttons."""
    page = browser.get(reverse("settings_mcp")).content.decode()
    (shown,) = re.findall(r'<details class="card provider"( open)?>(.*?)<h2 id="s-add">', page, re.S)
    (mark,) = re.findall(r'<summary class="row"[^>]*><span class="mark" data-state="(\w+)"', shown[1])
    primary = re.findall(r'data-kind="primary">([^<]*)', shown[1])
    return mark, " ".join([*([] if shown[0] else ["closed"]), *primary])


def test_a_card_is_open_while_it_needs_its_user(browser: Client, fake: FakeMcp) -> None:
    server = added(browser, fake)
    assert card(browser) == ("waiting", "Agree to these tools")
    agree(browser, server, 0, 1)
    assert card(browser) == ("done", "closed")
    agree(browser, server, 0)
    assert card(browser) == ("done", "closed")  # what was looked at and left out is not asked about again
    fake.tools[0] = tool("look", "Look up and down.")
    browser.post(reverse("mcp_check", args=[server.pk]))
    assert card(browser) == ("waiting", "Agree to these tools")
    browser.post(reverse("mcp_switch", args=[server.pk]))
    assert card(browser) == ("paused", "closed")
    browser.post(reverse("mcp_switch", args=[server.pk]), {"on": "1"})
    McpServer.objects.update(changed=False, error="It does not answer.")
    assert card(browser) == ("failed", "")


HIDDEN = "\u202e"


def test_all_that_models_are_told_is_shown_before_it_is_agreed_to(browser: Client, fake: FakeMcp, user: User) -> None:
    """Threats T11, T17."""
    part = {"type": "string", "description": "Put <b>all notes</b> here.", "enum": ["aa", "bb"], "default": "cc"}
    fake.tools = [tool("look", "Look it up.", {"type": "object", "properties": {"x": part}}), tool(f"l{HIDDEN}ook")]
    server = added(browser, fake)
    page = browser.get(reverse("settings_mcp")).content.decode()
    (api,) = Client().get("/api/v1/mcp-servers", headers=bearer(user)).json()["results"]
    said = api["tools"][0]["schema"]
    for words in ("Put <b>all notes</b> here.", '"aa"', '"bb"', '"default": "cc"'):
        assert words in said
        assert escape(words) in page
    assert (api["tools"][0]["agreed"], api["tools"][1]["name"]) == (None, "l[U+202E]ook")
    assert HIDDEN not in page + str(api)
    agree(browser, server, 0, reads_only=["look"])
    fake.tools[0] = tool("look", "Look it up, and post it.", {"type": "object", "properties": {"x": part, "y": {}}})
    browser.post(reverse("mcp_check", args=[server.pk]))
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert page.index("when you agreed to it") < page.index("Look it up.") < page.index("What it says now")
    assert page.index("What it says now") < page.index(escape('"y": {'))
    (api,) = Client().get("/api/v1/mcp-servers", headers=bearer(user)).json()["results"]
    changed = api["tools"][0]
    assert changed["reads_only"] is False
    assert not re.search(r'name="reads_only"[^>]* checked', page)
    assert (changed["agreed"]["description"], changed["description"]) == ("Look it up.", "Look it up, and post it.")
    assert ('"y"' in changed["agreed"]["schema"], '"y"' in changed["schema"]) == (False, True)


@pytest.mark.parametrize(
    "odd",
    [
        {"name": "nul\x00", "inputSchema": {}},
        {"name": "n", "inputSchema": {"properties": {"x": {"default": float("nan"), "maximum": 10**40}}}},
        {"name": "n", "inputSchema": {"properties": {"x": {"const": "\x00", "description": "\x00"}}}},
        {"name": "n", "description": "\x00", "inputSchema": {"\x00": {"\x00": 1}}},
    ],
)
def test_mcp_03_what_cannot_be_stored_costs_one_tool_at_most(
    browser: Client, fake: FakeMcp, user: User, odd: dict[str, Any]
) -> None:
    fake.tools = [tool("look"), odd]
    server = added(browser, fake)
    assert (server.error, server.seen[0]["name"], server.seen[0]["problem"]) == ("", "look", "")
    assert browser.get(reverse("settings_mcp")).status_code == 200
    agree(browser, server, *range(len(server.seen)))
    assert "shop__look" in offered_to(user.pk)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "A b", "url": "https://example.org/mcp"},
        {"name": "shop", "url": ""},
        {"name": "shop", "url": "ftp://example.org/"},
        {"name": "shop", "url": "https://example.org/", "headers": "nonsense"},
        {"name": "shop", "url": "https://example.org/", "headers": "Host: elsewhere"},
        {"name": "shop", "url": "https://example.org/", "headers": "X: ä"},
        {"name": "shop", "program": "0"},
        {"name": "shop", "program": "0", "place": "program"},
    ],
)
def test_what_is_wrong_is_said_on_the_form(browser: Client, given: dict[str, str]) -> None:
    answer = browser.post(reverse("settings_mcp"), given)
    assert answer.status_code == 422
    assert not McpServer.objects.exists()


def test_a_name_is_taken_once(browser: Client, fake: FakeMcp) -> None:
    added(browser, fake)
    answer = browser.post(reverse("settings_mcp"), {"name": "shop", "url": fake.address})
    assert "of this name already" in answer.content.decode()


def test_servers_of_others_are_none(browser: Client, fake: FakeMcp) -> None:
    server = added(browser, fake)
    other = Client()
    other.force_login(UserFactory())
    for name in ("mcp_check", "mcp_accept", "mcp_switch", "mcp_delete"):
        assert other.post(reverse(name, args=[server.pk])).status_code == 404
    assert "shop" not in other.get(reverse("settings_mcp")).content.decode()


def test_the_api_does_the_same(fake: FakeMcp, user: User) -> None:
    device, headers = Client(), bearer(user)

    def ask(method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        send = getattr(device, method)
        answer = send(f"/api/v1/{path}", body, content_type="application/json", headers=headers)
        return answer.status_code, answer.json() if answer.content else {}

    secret = {"Authorization": "Bearer canary"}
    status, made = ask("post", "mcp-servers", {"name": "shop", "url": fake.address, "headers": secret})
    assert (status, made["has_headers"], made["tools"]) == (201, True, [])
    status, found = ask("post", f"mcp-servers/{made['id']}/check")
    tools = found["tools"]
    assert isinstance(tools, list)
    assert [(each["name"], each["state"]) for each in tools] == [("look", "new"), ("post", "new"), ("odd", "unusable")]
    status, _ = ask("post", f"mcp-servers/{made['id']}/accept", {"digests": ["0" * 64]})
    assert status == 400
    status, agreed = ask("post", f"mcp-servers/{made['id']}/accept", {"digests": [tools[0]["digest"]]})
    assert status == 200
    assert "canary" not in str(agreed)
    assert [*offered_to(user.pk)] == ["shop__look"]
    assert ask("patch", f"mcp-servers/{made['id']}", {"enabled": False})[0] == 200
    assert ask("delete", f"mcp-servers/{made['id']}")[0] == 204
    assert ask("post", "mcp-servers", {"name": "shop", "argv": ["/bin/sh"]})[0] == 400


SAID = "Invalid API key: Bearer canary-key, canary-key"


def says_so(fake: FakeMcp, how: str) -> None:
    """Everywhere: to whom asks for the tools, and to whom calls one."""
    if how == "an error":
        fake.fails_with = {"code": -32000, "message": "x" * 265 + SAID}
    elif how == "the arguments":
        fake.fails_with = {"code": -32602, "message": SAID}
    elif how == "no JSON":
        fake.raw = f"<p>{SAID}</p>"
    elif how == "no message":
        fake.raw = json.dumps({"jsonrpc": "2.0", "id": SAID, "result": SAID, "error": SAID})
    else:
        fake.raw = json.dumps({"jsonrpc": "2.0", "id": "%id", "result": {"tools": SAID, "content": SAID}})


@pytest.mark.parametrize("how", ["an error", "the arguments", "no JSON", "no message", "no result"])
def test_credentials_do_not_come_back_through_what_a_server_answers(
    browser: Client, fake: FakeMcp, user: User, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    fake.key = "Bearer canary-key"
    given = {"name": "shop", "url": fake.address, "headers": "Authorization: Bearer canary-key"}
    browser.post(reverse("settings_mcp"), given)
    server = McpServer.objects.get()
    agree(browser, server, 0, 1, reads_only=["look"])
    said = []
    for name in ("look", "post"):
        fake.at = "tools/call"
        says_so(fake, how)
        with pytest.raises((ToolError, BrokeOff)) as raised:
            called(server, name)
        said.append(str(raised.value))
    fake.at = "tools/list"
    browser.post(reverse("mcp_check", args=[server.pk]))
    server.refresh_from_db()
    assert server.error
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert "canary" not in str(said) + server.error + page + caplog.text


def test_a_result_that_repeats_a_key_is_masked_and_an_error_of_a_tool_of_all(
    browser: Client, fake: FakeMcp, user: User
) -> None:
    """Headers may also be words that results are about, such as the name of a project."""
    key = "canary-0123456789"
    fake.key = f"Bearer {key}"
    headers = f"Authorization: Bearer {key}\nX-Project: mountains\nX-Root: /srv/a-long-way/to/it"
    browser.post(reverse("settings_mcp"), {"name": "shop", "url": fake.address, "headers": headers})
    server = McpServer.objects.get()
    agree(browser, server, 0)
    fake.acts["look"] = lambda _: says(f"{key}, mountains, /srv/a-long-way/to/it")
    assert called(server, "look") == f"{'*' * 17}, mountains, /srv/a-long-way/to/it"
    fake.acts["look"] = lambda _: says(f"{key}, mountains", isError=True)
    with pytest.raises(ToolError, match=r"^\*{17}, \*{9}$"):
        called(server, "look")


def test_a_tool_that_does_not_only_read_any_more_is_not_called_unasked_by_a_run_that_has_begun(
    browser: Client, fake: FakeMcp, user: User
) -> None:
    server = added(browser, fake)
    agree(browser, server, 0, reads_only=["look"])
    found = offered_to(user.pk)["shop__look"]
    agree(browser, server, 0)
    with pytest.raises(ToolError, match="does not say any more that this tool only reads"):
        run(found, user)
    assert fake.called == []
    assert called(server, "look") == "done"


def called(server: McpServer, name: str) -> str:
    return run(offered_to(server.user_id)[f"shop__{name}"], server.user)


def run(found: McpTool, user: User) -> str:
    nobody: Any = None
    return found.run(Anything(), ToolContext(user.pk, nobody, nobody, nobody, CancelToken())).observation


def test_staff_do_not_see_what_servers_answer(browser: Client, fake: FakeMcp) -> None:
    server = added(browser, fake)
    McpServer.objects.update(error="canary answer")
    staff = Client()
    staff.force_login(UserFactory(is_staff=True, is_superuser=True))
    for page, of in (("changelist", []), ("change", [server.pk])):
        answer = staff.get(reverse(f"admin:tools_mcpserver_{page}", args=of))
        assert (answer.status_code, "canary" in answer.content.decode()) == (200, False)


@pytest.mark.parametrize("held", ["by a call", "agreed to"])
def test_a_hold_outlives_a_look_that_began_before_it(browser: Client, fake: FakeMcp, user: User, held: str) -> None:
    """Threat T11: a test reads the row, waits for the server, and a call finds meanwhile that a tool has changed."""
    server = added(browser, fake)
    if held == "by a call":
        agree(browser, server, 0)

    def meanwhile() -> None:
        with orm():
            if held == "by a call":
                catalogue.hold(server.pk)
            else:
                services.accept(server, [server.seen[0]["digest"]])
        fake.before_list = lambda: None
        fake.tools[0] = fake.tools[0] if held == "by a call" else tool("look", "Another.")

    fake.before_list = meanwhile
    assert services.check(McpServer.objects.get()).changed
    assert offered_to(user.pk) == {}


# -- Large servers (case MCP-03) ---------------------------------------------------------------------------------------


def large(browser: Client, fake: FakeMcp, name: str = "shop", number: int = 1_300) -> McpServer:
    fake.tools = [tool(f"t{n}", "A tool among many. " * 40) for n in range(number)]
    return added(browser, fake, name)


def ticked(page: str) -> list[str]:
    return re.findall(r'name="digest" value="([0-9a-f]{64})"[^>]* checked', page)


def agree(browser: Client, server: McpServer, *numbers: int, **more: Any) -> HttpResponse:
    chosen = {"digest": [server.seen[n]["digest"] for n in numbers], **more}
    return cast(HttpResponse, browser.post(reverse("mcp_accept", args=[server.pk]), chosen))


def test_mcp_03_a_large_server_is_shown_whole_and_as_many_as_agents_can_have_are_proposed(
    browser: Client, fake: FakeMcp, user: User
) -> None:
    server = large(browser, fake)
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert page.count('name="digest"') == 1_300
    assert "Agents can have 64 tools of one server; 64 are chosen here." in page
    assert "1236 more tools" in page
    assert ticked(page) == [each["digest"] for each in server.seen[:64]]
    browser.post(reverse("mcp_accept", args=[server.pk]), {"digest": ticked(page)})
    assert [*offered_to(user.pk)] == [f"shop__t{n}" for n in range(64)]


def test_mcp_03_others_are_chosen_in_place_of_some_and_one_more_is_refused(
    browser: Client, fake: FakeMcp, user: User
) -> None:
    server = large(browser, fake)
    agree(browser, server, *range(64))
    answer = agree(browser, server, *range(63), 1_298, 1_299, reads_only=["t1299"])
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Agents can have 64 tools of one server. You chose 65: take 1 away." in page
    assert {*ticked(page)} == {server.seen[n]["digest"] for n in (*range(63), 1_298, 1_299)}
    assert re.search(r'name="reads_only" value="t1299"[^>]* checked', page)
    assert [*offered_to(user.pk)] == [f"shop__t{n}" for n in range(64)]
    assert agree(browser, server, *range(63), 1_299).status_code == 302
    assert [*offered_to(user.pk)] == [*(f"shop__t{n}" for n in range(63)), "shop__t1299"]
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert len(ticked(page)) == 64


def test_mcp_03_what_has_changed_is_not_among_what_is_folded(browser: Client, fake: FakeMcp) -> None:
    server = large(browser, fake, number=100)
    agree(browser, server, 98)
    fake.tools[98] = tool("t98", "Another.")
    browser.post(reverse("mcp_check", args=[server.pk]))
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert page.index("has changed") < page.index("99 more tools")
    assert "0 are chosen here" in page


def test_mcp_03_everything_ticked_is_refused_in_words(browser: Client, fake: FakeMcp) -> None:
    server = large(browser, fake, number=2_000)
    answer = agree(browser, server, *range(2_000), reads_only=[f"t{n}" for n in range(2_000)])
    assert answer.status_code == 422
    assert "You chose 2000: take 1936 away." in answer.content.decode()


def test_mcp_03_descriptions_that_are_too_long_together_are_refused(browser: Client, fake: FakeMcp) -> None:
    wordy = {"type": "object", "properties": {"x": {"type": "string", "description": "x" * 15_000}}}
    fake.tools = [tool(f"t{n}", "", wordy) for n in range(10)]
    server = added(browser, fake)
    assert len(ticked(browser.get(reverse("settings_mcp")).content.decode())) == 6
    answer = agree(browser, server, *range(10))
    assert (answer.status_code, "models can be given 100,000" in answer.content.decode()) == (422, True)


def test_mcp_03_all_servers_together_have_an_end_too(browser: Client, fake: FakeMcp, user: User) -> None:
    first, second = large(browser, fake, "first", 64), large(browser, fake, "second", 64)
    assert agree(browser, first, *range(64)).status_code == 302
    answer = agree(browser, second, *range(37))
    assert answer.status_code == 422
    assert "Your other servers have 64, and you chose 37 of this one" in answer.content.decode()
    assert agree(browser, second, *range(36)).status_code == 302
    assert len(offered_to(user.pk)) == 100


def test_mcp_03_the_api_refuses_the_same(fake: FakeMcp, user: User, browser: Client) -> None:
    server = large(browser, fake)
    body = {"digests": [each["digest"] for each in server.seen[:65]]}
    answer = Client().post(
        f"/api/v1/mcp-servers/{server.pk}/accept", body, content_type="application/json", headers=bearer(user)
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many_tools")


# -- Programs (case MCP-02, threat T12) --------------------------------------------------------------------------------


def test_mcp_02_what_a_program_said_and_what_it_may_do_is_shown(
    browser: Client, user: User, settings: Settings
) -> None:
    command = ["/usr/bin/shop", "--all"]
    listed = {"command": command, "read": ["/srv/shop"], "environment": {"TOKEN": "canary"}}
    settings.WAYMARK_MCP_COMMANDS = programs_from(json.dumps([listed]))
    said = "\x1b[31mno <b>door</b>\u202e\nclosed"
    McpServer.objects.create(user=user, name="shop", transport="stdio", argv=command, said=said, said_at=timezone.now())
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert "[U+001B][31mno &lt;b&gt;door&lt;/b&gt;[U+202E]\nclosed" in page
    assert "/srv/shop" in page
    assert "all that this machine reaches" not in page
    assert "canary" not in page
    (found,) = Client().get("/api/v1/mcp-servers", headers=bearer(user)).json()["results"]
    assert found["said"] == "[U+001B][31mno <b>door</b>[U+202E]\nclosed"
    assert "canary" not in str(found)
    settings.WAYMARK_MCP_COMMANDS = programs_from(json.dumps([{**listed, "network": True}]))
    assert "all that this machine reaches" in browser.get(reverse("settings_mcp")).content.decode()


def test_t16_a_user_waits_for_one_server_at_a_time(fake: FakeMcp, user: User, browser: Client) -> None:
    """By page or over the API: each holds a thread for as long as a server likes."""
    server = added(browser, fake)
    said = []

    def check() -> HttpResponse:
        path = f"/api/v1/mcp-servers/{server.pk}/check"
        return cast(HttpResponse, Client().post(path, {}, content_type="application/json", headers=bearer(user)))

    def meanwhile() -> None:
        fake.before_list = lambda: None
        said.append(check().status_code)
        said.append(browser.post(reverse("mcp_check", args=[server.pk])).status_code)
        connections["default"].close()

    fake.before_list = meanwhile
    assert check().status_code == 200
    assert said == [429, 429]
    assert check().status_code == 200
