"""Servers of tools that are changed: what stays, what must be agreed to anew, and what nobody else gets."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from agents.services import assistant_of
from memory.pool import orm
from tests.factories import UserFactory, bearer
from tests.mcp_server import FakeMcp, fake_mcp, tool
from tools.mcp import loop, services, sessions
from tools.mcp.definitions import read
from tools.mcp.models import McpServer, McpSignIn, Transport
from tools.mcp.offered import offered_to
from tools.mcp.program_list import programs_from
from tools.models import Trust

pytestmark = pytest.mark.django_db(transaction=True)

SIGN_IN = {
    "server": {"issuer": "https://auth.example.org", "authorization_endpoint": "https://auth.example.org/authorize"}
}


@pytest.fixture
def fakes(settings: Settings) -> Iterator[tuple[FakeMcp, FakeMcp]]:
    """Two servers that want the same key."""
    with fake_mcp() as first, fake_mcp() as second:
        settings.WAYMARK_FETCH_PRIVATE = [first.place, second.place]
        for each in (first, second):
            each.key, each.tools = "Bearer canary", [tool("look")]
        yield first, second
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


@pytest.fixture
def server(user: User, fakes: tuple[FakeMcp, FakeMcp]) -> McpServer:
    """Named, agreed to and trusted."""
    named = services.Named("shop", fakes[0].address, {"Authorization": "Bearer canary"})
    row = services.check(services.add(user, named))
    services.accept(row, [each.digest for each in read(row.seen)])
    until = timezone.now() + timedelta(days=1)
    Trust.objects.create(user=user, thread=assistant_of(user).thread, tool="shop__look", until=until)
    return McpServer.objects.get()


def saved(browser: Client, server: McpServer, **given: str) -> None:
    answer = browser.post(reverse("mcp_edit", args=[server.pk]), {"label": "", "url": server.url, **given})
    assert answer.status_code == 302
    server.refresh_from_db()


def trusted() -> int:
    return Trust.objects.filter(revoked_at=None).count()


def test_another_name_is_for_people_and_tools_keep_theirs(browser: Client, user: User, server: McpServer) -> None:
    saved(browser, server, label="The shop <b>downstairs</b>")
    page = browser.get(reverse("settings_mcp")).content.decode()
    assert "The shop &lt;b&gt;downstairs&lt;/b&gt;" in page
    assert "shop__" in page
    assert [*offered_to(user.pk)] == ["shop__look"]
    assert (trusted(), bool(server.sealed_headers)) == (1, True)


def test_another_address_is_another_server(
    browser: Client, user: User, server: McpServer, fakes: tuple[FakeMcp, FakeMcp]
) -> None:
    McpSignIn.objects.create(server=server, found=SIGN_IN)
    saved(browser, server, url=fakes[1].address)
    assert (server.accepted, server.seen, server.sealed_headers) == ([], [], "")
    assert offered_to(user.pk) == {}
    assert trusted() == 0
    assert not McpSignIn.objects.exists()
    assert fakes[1].methods
    assert set(fakes[1].heard) == {""}
    assert "canary" not in browser.get(reverse("mcp_edit", args=[server.pk])).content.decode()


def test_what_the_old_address_says_is_not_kept_of_the_new_one(
    server: McpServer, fakes: tuple[FakeMcp, FakeMcp]
) -> None:
    """It was moved while it was looked at."""

    def move() -> None:
        with orm():
            services.edit(server, services.Changes(url=fakes[1].address))

    fakes[0].before_list = move
    services.check(server)
    server.refresh_from_db()
    assert (server.url, server.seen, server.error, server.checked_at) == (fakes[1].address, [], "", None)


def test_credentials_that_are_given_with_the_address_are_for_it(
    browser: Client, server: McpServer, fakes: tuple[FakeMcp, FakeMcp]
) -> None:
    saved(browser, server, url=fakes[1].address, headers="Authorization: Bearer canary")
    assert (server.error, [each["name"] for each in server.seen], server.accepted) == ("", ["look"], [])


def test_other_credentials_leave_what_was_agreed_to(
    browser: Client, user: User, server: McpServer, fakes: tuple[FakeMcp, FakeMcp]
) -> None:
    McpSignIn.objects.create(server=server, found=SIGN_IN)
    fakes[0].key = "Bearer canary two"
    saved(browser, server, headers="Authorization: Bearer canary two")
    assert (server.error, [*offered_to(user.pk)], trusted()) == ("", ["shop__look"], 1)
    assert not McpSignIn.objects.exists()  # it may not be asked for any more
    saved(browser, server, no_headers="on")
    assert server.sealed_headers == ""
    assert "credentials" in server.error


@pytest.mark.parametrize("given", [{"url": ""}, {"url": "ftp://x/"}, {"headers": "nonsense"}, {"headers": "Host: x"}])
def test_what_is_wrong_is_said_and_nothing_changes(browser: Client, server: McpServer, given: dict[str, str]) -> None:
    before = McpServer.objects.values().get()
    answer = browser.post(reverse("mcp_edit", args=[server.pk]), {"label": "new", "url": server.url, **given})
    assert answer.status_code == 422
    assert McpServer.objects.values().get() == before


def test_the_api_changes_what_is_said_and_nothing_else(
    user: User, server: McpServer, fakes: tuple[FakeMcp, FakeMcp]
) -> None:
    device, headers = Client(), bearer(user)

    def patch(body: dict[str, object]) -> Any:
        path = f"/api/v1/mcp-servers/{server.pk}"
        return device.patch(path, body, content_type="application/json", headers=headers)

    made = patch({"label": "The shop"}).json()
    assert (made["name"], made["label"], made["has_headers"], made["sign_in"]) == ("shop", "The shop", True, "none")
    assert [each["state"] for each in made["tools"]] == ["accepted"]
    assert patch({"headers": {}}).json()["has_headers"] is False
    moved = patch({"url": fakes[1].address, "enabled": False}).json()
    assert (moved["url"], moved["tools"], moved["enabled"]) == (fakes[1].address, [], False)
    wrong: dict[str, object] = {"name": "other", "url": "nonsense", "argv": ["/bin/sh"], "headers": {"Host": "x"}}
    for body in ({field: value} for field, value in wrong.items()):
        assert patch(body).status_code == 400
    assert fakes[1].heard == []


def test_another_program_is_another_server(user: User, settings: Settings, browser: Client) -> None:
    settings.WAYMARK_MCP_COMMANDS = programs_from('[["/bin/one"], ["/bin/two"]]')
    user.is_staff = True
    user.save()
    server = McpServer.objects.create(
        user=user, name="shop", transport=Transport.STDIO, argv=["/bin/one"], accepted=[], reads_only=["look"]
    )
    path = reverse("mcp_edit", args=[server.pk])
    assert browser.post(path, {"label": "", "program": "2"}).status_code == 422
    services.edit(server, services.Changes(argv=["/bin/two"]))
    server.refresh_from_db()
    assert (server.argv, server.reads_only) == (["/bin/two"], [])
    with pytest.raises(services.NotTaken):
        services.edit(server, services.Changes(argv=["/bin/sh"]))
    with pytest.raises(services.NotTaken):
        services.edit(server, services.Changes(url="https://example.org/"))
    (chosen,) = re.findall(r'<option value="(\w+)" selected>/bin/two<', browser.get(path).content.decode())
    settings.WAYMARK_MCP_COMMANDS = programs_from('[["/bin/two"], ["/bin/three"], ["/bin/one"]]')
    assert browser.post(path, {"label": "", "program": chosen}).status_code == 302  # an open form means what it showed
    server.refresh_from_db()
    assert server.argv == ["/bin/two"]
    settings.WAYMARK_MCP_COMMANDS = programs_from('[["/bin/three"]]')
    assert browser.post(path, {"label": "", "program": chosen}).status_code == 422


def test_programs_are_given_no_headers(user: User, settings: Settings) -> None:
    settings.WAYMARK_MCP_COMMANDS = programs_from('[["/bin/one"]]')
    user.is_staff = True
    user.save()
    headers = {"Authorization": "Bearer canary"}
    with pytest.raises(services.NotTaken, match="no headers"):
        services.add(user, services.Named("shop", argv=["/bin/one"], headers=headers))
    server = services.add(user, services.Named("shop", argv=["/bin/one"]))
    with pytest.raises(services.NotTaken, match="no headers"):
        services.edit(server, services.Changes(headers=headers))
    assert not McpServer.objects.get().sealed_headers
