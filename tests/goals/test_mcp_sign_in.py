"""Signing in to MCP servers (OAuth): away, back, out; and what is refused on the way."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memory.ids import new_id
from memory.pool import orm
from memory.secrets import seal, unseal
from tests.factories import UserFactory, bearer
from tests.mcp_server import FakeMcp, fake_mcp, tool
from tests.oauth_server import FakeOAuth, come_back, fake_oauth, guard
from tools.base import ToolContext, ToolError
from tools.cancel import CancelToken
from tools.mcp import loop, offered, services, sessions, signing_in
from tools.mcp.definitions import read
from tools.mcp.failures import SignInFailed
from tools.mcp.models import McpServer, McpSignIn
from tools.mcp.oauth import Tokens
from tools.mcp.tokens import REFRESHED_AT_ONCE, access_token
from tools.mcp.tool import Anything
from tools.mcp.transports import target_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fake(settings: Settings) -> Iterator[FakeMcp]:
    with fake_mcp() as served:
        served.tools = [tool("look", "Look it up.")]
        yield served
        loop.submit(sessions.close_all()).result(10)


@pytest.fixture
def oauth(fake: FakeMcp, settings: Settings) -> Iterator[FakeOAuth]:
    with fake_oauth(fake.address) as served:
        settings.WAYMARK_FETCH_PRIVATE = [fake.place, served.place]
        guard(fake, served)
        yield served


@pytest.fixture
def user() -> User:
    user: User = UserFactory()
    return user


@pytest.fixture
def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def shown(browser: Client) -> str:
    return browser.get(reverse("settings_mcp")).content.decode()


def added(browser: Client, fake: FakeMcp) -> McpServer:
    assert browser.post(reverse("settings_mcp"), {"name": "shop", "url": fake.address}).status_code == 302
    return McpServer.objects.get()


def sent_away(browser: Client, server: McpServer, **given: str) -> str:
    answer = browser.post(reverse("mcp_sign_in", args=[server.pk]), given)
    assert answer.status_code == 200
    away: str = answer.context["away"]
    return away


def signed_in(browser: Client, fake: FakeMcp) -> McpServer:
    """A server that its user has signed in to, and whose tools they have agreed to."""
    server = added(browser, fake)
    assert browser.get(come_back(sent_away(browser, server))).status_code == 302
    server.refresh_from_db()
    services.accept(server, [each.digest for each in read(server.seen)], ["look"])
    return McpServer.objects.get()


def called(server: McpServer) -> str:
    found = offered.find(server.user_id, "shop__look")
    assert found is not None
    nobody: Any = None
    return found.run(Anything(), ToolContext(server.user_id, nobody, nobody, nobody, CancelToken())).observation


def in_api(user: User, server: McpServer) -> dict[str, Any]:
    said: dict[str, Any] = Client().get(f"/api/v1/mcp-servers/{server.pk}", headers=bearer(user)).json()
    return said


def tokens() -> Tokens:
    return Tokens.model_validate_json(unseal(McpSignIn.objects.get().sealed_tokens))


def let_expire() -> None:
    over = tokens().model_copy(update={"expires_at": 1.0})
    McpSignIn.objects.update(sealed_tokens=seal(over.model_dump_json()))


def test_somebody_signs_in_calls_and_signs_out(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    server = added(browser, fake)
    assert server.error == ""
    assert f"Sign in at {oauth.place}" in shown(browser)
    assert in_api(user, server)["sign_in"] == "needed"
    away = sent_away(browser, server)
    asked = parse_qs(urlsplit(away).query)
    assert (asked["resource"], asked["scope"]) == ([fake.address], ["read offline_access"])
    back = come_back(away)
    assert urlsplit(back).path == "/settings/mcp/oauth/callback/"
    browser.get(back)
    page = shown(browser)
    assert "Look it up." in page
    assert "Signed in at" in page
    server.refresh_from_db()
    services.accept(server, [each.digest for each in read(server.seen)], ["look"])
    assert called(server) == "done"
    api = in_api(user, server)
    assert (api["sign_in"], api["sign_in_url"]) == ("done", f"http://testserver/settings/mcp/{server.pk}/sign-in/")
    stored = str([*McpServer.objects.values(), *McpSignIn.objects.values()])
    assert "canary" not in page + str(api) + stored + caplog.text
    browser.post(reverse("mcp_sign_out", args=[server.pk]))
    loop.submit(sessions.close_all()).result(10)
    with pytest.raises(ToolError, match="lets nobody in without a sign-in"):
        called(server)
    assert oauth.revoked.wait(10)
    assert f"Sign in at {oauth.place}" in shown(browser)
    assert oauth.refusals == []


def test_tokens_are_refreshed_once_however_many_ask(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    server = signed_in(browser, fake)
    before = tokens()
    let_expire()
    loop.submit(sessions.close_all()).result(10)
    said: list[str] = []

    def once() -> None:
        with orm():
            said.append(called(server))

    threads = [threading.Thread(target=once) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["done"] * 6
    assert oauth.asked.count("/token") == 2
    assert (oauth.refusals, tokens().refresh != before.refresh) == ([], True)


def test_tokens_are_refreshed_once_by_all_workers(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    signed_in(browser, fake)
    let_expire()
    oauth.slowness = 0.5  # so that all of them have come before the first is done
    grant = McpSignIn.objects.get().grant
    assert grant is not None
    got = [each.result(20) for each in [loop.submit(access_token(grant)) for _ in range(6)]]
    assert got == [tokens().access] * 6
    assert (oauth.asked.count("/token"), oauth.refusals) == (2, [])


def becomes(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until and not true():
        time.sleep(0.05)
    return true()


@pytest.mark.parametrize("how", ["sign out", "remove", "move"])
def test_t16_nobody_waits_for_an_authorization_server_that_hangs(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, how: str
) -> None:
    """Tokens that come when nobody wants them any more are given back."""
    server = signed_in(browser, fake)
    let_expire()
    grant = McpSignIn.objects.get().grant
    assert grant is not None
    oauth.goes_on.clear()
    refreshing = loop.submit(access_token(grant))
    assert becomes(lambda: oauth.asked.count("/token") == 2 and len(oauth.spent) == 1)
    if how == "move":
        services.edit(server, services.Changes(url=f"{fake.address}/other"))
    else:
        name = "mcp_sign_out" if how == "sign out" else "mcp_delete"
        assert browser.post(reverse(name, args=[server.pk])).status_code == 302
    assert not refreshing.done()
    assert not McpSignIn.objects.exclude(sealed_tokens="").exists()
    oauth.goes_on.set()
    assert refreshing.result(10) == ""
    assert oauth.revoked.wait(10)
    assert oauth.refreshing == {}


def test_t16_a_slow_authorization_server_stops_nobody_else(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, user: User
) -> None:
    signed_in(browser, fake)
    let_expire()
    row = McpSignIn.objects.get()
    for number in range(10):
        row.server = McpServer.objects.create(user=user, name=f"copy{number}", url=fake.address)
        oauth.refreshing[f"copy{number}"] = f"family{number}"
        over = Tokens(access="x", refresh=f"copy{number}", expires_at=1.0)
        row.sealed_tokens = seal(over.model_dump_json())
        row.pk, row.grant, row._state.adding = new_id(), new_id(), True
        row.save()
    oauth.goes_on.clear()
    grants = McpSignIn.objects.values_list("grant", flat=True)
    refreshing = [loop.submit(access_token(grant)) for grant in grants if grant is not None]
    assert becomes(lambda: oauth.asked.count("/token") == 1 + REFRESHED_AT_ONCE)
    fake.lets_in = lambda method, authorization: True
    assert services.check(services.add(UserFactory(), services.Named("shop", fake.address))).error == ""
    assert oauth.asked.count("/token") == 1 + REFRESHED_AT_ONCE
    oauth.goes_on.set()
    assert all(each.result(20) for each in refreshing)


def test_who_gives_up_waiting_does_not_give_up_the_new_tokens(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    """The old ones are used up."""
    server = signed_in(browser, fake)
    let_expire()
    before, grant = tokens(), McpSignIn.objects.get().grant
    assert grant is not None
    oauth.goes_on.clear()
    refreshing = loop.submit(access_token(grant))
    assert becomes(lambda: len(oauth.spent) == 1)
    refreshing.cancel()
    oauth.goes_on.set()
    assert becomes(lambda: tokens() != before)
    assert called(server) == "done"
    assert oauth.refusals == []


def test_a_lease_that_nobody_gave_back_ends(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    """Of a worker that was killed."""
    server = signed_in(browser, fake)
    let_expire()
    McpSignIn.objects.update(refreshing_until=Now() + timedelta(seconds=0.5))
    assert called(server) == "done"
    assert McpSignIn.objects.get().refreshing_until is None


def test_a_server_that_wants_more_rights_is_given_them_at_the_next_sign_in(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth
) -> None:
    server = signed_in(browser, fake)
    challenge, fake.challenge = fake.challenge, 'Bearer error="insufficient_scope", scope="write"'
    fake.lets_in = lambda method, authorization: method != "tools/call"
    with pytest.raises(ToolError, match=r"Nothing was done: The server wants more rights"):
        called(server)
    fake.challenge, fake.lets_in = challenge, oauth.knows
    assert called(server) == "done"
    asked = parse_qs(urlsplit(sent_away(browser, server)).query)
    assert asked["scope"] == ["read offline_access write"]


def test_rights_are_asked_for_by_whole_names(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    server = signed_in(browser, fake)
    names = [f"right{n}" for n in range(1_000)]
    challenge, fake.challenge = fake.challenge, f'Bearer error="insufficient_scope", scope="{" ".join(names)}"'
    fake.lets_in = lambda method, authorization: method != "tools/call"
    with pytest.raises(ToolError, match="wants more rights"):
        called(server)
    fake.challenge, fake.lets_in = challenge, oauth.knows
    (scope,) = parse_qs(urlsplit(sent_away(browser, server)).query)["scope"]
    asked = scope.split()
    assert (asked[:3], {*asked} <= {"read", "offline_access", *names}) == (["read", "offline_access", "right0"], True)


def test_a_token_that_is_refused_is_refreshed_and_the_call_made(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth
) -> None:
    server = signed_in(browser, fake)
    oauth.alive.clear()
    assert called(server) == "done"
    assert oauth.asked.count("/token") == 2
    assert len(fake.called) == 1


@pytest.mark.parametrize("when", ["it is over", "it is refused", "the new one is refused"])
def test_a_sign_in_that_was_withdrawn_leads_to_sign_in_again(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, when: str
) -> None:
    server = signed_in(browser, fake)
    if when == "it is over":
        let_expire()
        oauth.refreshing.clear()
    elif when == "it is refused":
        oauth.alive.clear()
        oauth.refreshing.clear()
    else:
        fake.lets_in = lambda method, authorization: False
    with pytest.raises(ToolError, match=r"Nothing was done\. The server lets nobody in without a sign-in"):
        called(server)
    assert f"Sign in again at {oauth.place}" in shown(browser)
    fake.lets_in = lambda method, authorization: True
    asked = len(fake.heard)
    with pytest.raises(ToolError, match="lets nobody in"):
        called(server)
    assert services.check(McpServer.objects.get()).error == ""
    assert fake.heard[asked:] == []  # nor as nobody, nor with headers of its own
    assert f"Sign in again at {oauth.place}" in shown(browser)
    fake.lets_in = oauth.knows
    browser.get(come_back(sent_away(browser, server)))
    assert called(server) == "done"


def test_a_sign_in_elsewhere_than_before_makes_no_call_one_of_nobody(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, settings: Settings
) -> None:
    server = signed_in(browser, fake)
    McpSignIn.objects.update(sealed_tokens="")
    with fake_oauth(fake.address) as other_place:
        settings.WAYMARK_FETCH_PRIVATE.append(other_place.place)
        guard(fake, other_place)
        services.check(McpServer.objects.get())
        assert f"Sign in again at {other_place.place}" in shown(browser)
        fake.lets_in = lambda method, authorization: True
        asked = len(fake.heard)
        with pytest.raises(ToolError, match="lets nobody in"):
            called(server)
        assert fake.heard[asked:] == []


def test_an_authorization_server_that_is_away_costs_no_sign_in(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth
) -> None:
    server = signed_in(browser, fake)
    let_expire()
    oauth.is_away = True
    with pytest.raises(ToolError, match=r"Nothing was done\. .*could not be renewed.*\(503\)"):
        called(server)
    oauth.is_away = False
    assert called(server) == "done"


@pytest.mark.parametrize(
    "error", [{"error": "invalid_request"}, {"error": "temporarily_unavailable"}, {"error": "canary"}, ["canary"], None]
)
def test_a_refusal_that_says_nothing_of_the_sign_in_costs_none(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, error: Any
) -> None:
    """What stands before an authorization server, or a mistake of its own, answers 4xx, too."""
    server = signed_in(browser, fake)
    let_expire()
    oauth.refuses_with = (403, error)
    with pytest.raises(ToolError, match=r"Nothing was done\. .*could not be renewed"):
        called(server)
    oauth.refuses_with = None
    assert called(server) == "done"


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": ["canary"]},
        {"access_token": "canary\r\nX-Canary: 1"},
        {"access_token": "canary", "token_type": "mac"},
        ["canary"],
    ],
)
def test_tokens_that_are_none_are_not_taken_and_not_repeated(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    oauth.answer = answer
    page = browser.get(come_back(sent_away(browser, added(browser, fake))), follow=True).content.decode()
    assert "that is none." in page
    assert "canary" not in page + caplog.text
    assert not McpSignIn.objects.get().is_done


def test_a_server_that_lets_everybody_look_asks_when_it_is_called(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth
) -> None:
    fake.lets_in = lambda method, authorization: method != "tools/call" or oauth.knows(method, authorization)
    server = added(browser, fake)
    services.accept(server, [each.digest for each in read(server.seen)], ["look"])
    assert "Sign in" not in shown(browser)
    with pytest.raises(ToolError, match=r"Nothing was done: The server lets nobody in"):
        called(server)
    services.check(McpServer.objects.get())
    assert f"Sign in at {oauth.place}" in shown(browser)
    browser.get(come_back(sent_away(browser, server)))
    assert called(server) == "done"


def test_a_server_that_lets_everybody_in_again_wants_no_sign_in(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth
) -> None:
    server = added(browser, fake)
    assert f"Sign in at {oauth.place}" in shown(browser)
    fake.lets_in = lambda method, authorization: True
    browser.post(reverse("mcp_check", args=[server.pk]))
    page = shown(browser)
    assert "Look it up." in page
    assert "Sign in at" not in page


def test_who_is_signed_in_to_a_server_that_fails_is_told_both(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    away = sent_away(browser, added(browser, fake))
    fake.at, fake.fails_with = "tools/list", {"code": -32000, "message": "out of order"}
    page = browser.get(come_back(away), follow=True).content.decode()
    assert "You are signed in, but the server cannot be used: The server could not be reached: out of order" in page
    assert "Look at the server" not in page


def test_tokens_go_nowhere_but_where_they_are_for(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, settings: Settings
) -> None:
    """Neither to another address, nor by a connection of the old one once somebody else has signed in."""
    server = signed_in(browser, fake)
    before, connected = tokens().access, target_of(server)
    with fake_mcp() as second:
        settings.WAYMARK_FETCH_PRIVATE.append(second.place)
        services.edit(server, services.Changes(url=second.address))
        services.check(McpServer.objects.get())
        assert set(second.heard) == {""}
        assert not McpSignIn.objects.exists()
    assert offered.offered_to(server.user_id) == {}
    services.edit(server, services.Changes(url=fake.address))
    services.check(McpServer.objects.get())
    browser.get(come_back(sent_away(browser, server)))
    assert tokens().access != before
    asked = len(fake.heard)
    with pytest.raises(sessions.SignInNeeded):
        sessions.tools_of(connected, CancelToken())
    assert fake.heard[asked:] == []


def test_where_nobody_is_registered_the_user_says_as_whom(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    oauth.metadata["registration_endpoint"] = None
    back = "http://testserver/settings/mcp/oauth/callback/"
    oauth.clients["ours"] = ("canary-secret", [back])
    server = added(browser, fake)
    page = browser.get(reverse("mcp_sign_in", args=[server.pk])).content.decode()
    assert back in page
    answer = browser.post(reverse("mcp_sign_in", args=[server.pk]))
    assert (answer.status_code, "Which client id" in answer.content.decode()) == (422, True)
    browser.get(come_back(sent_away(browser, server, client_id="ours", secret="canary-secret")))
    assert McpSignIn.objects.get().is_done
    browser.post(reverse("mcp_sign_out", args=[server.pk]))
    browser.get(come_back(sent_away(browser, server)))  # as last time
    assert McpSignIn.objects.get().is_done
    assert "canary" not in browser.get(reverse("mcp_sign_in", args=[server.pk])).content.decode()


def test_who_reads_documents_is_told_of_us_by_one(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    oauth.metadata |= {"registration_endpoint": None, "client_id_metadata_document_supported": True}
    server = added(browser, fake)
    path = reverse("mcp_sign_in", args=[server.pk])
    assert browser.post(path).status_code == 422  # in the clear it is nobody's
    away = browser.post(path, secure=True).context["away"]
    document = parse_qs(urlsplit(away).query)["client_id"][0]
    assert document == "https://testserver/settings/mcp/oauth/client.json"
    said = Client().get(urlsplit(document).path, secure=True).json()
    assert said["client_id"] == document
    oauth.clients[document] = ("", said["redirect_uris"])
    browser.get(come_back(away), secure=True)
    assert McpSignIn.objects.get().is_done
    assert oauth.refusals == []


def other(browser: Client, back: str) -> tuple[Client, str]:
    stranger = Client()
    stranger.force_login(UserFactory())
    return stranger, back


def replayed(browser: Client, back: str) -> tuple[Client, str]:
    browser.get(back, follow=True)
    McpSignIn.objects.update(sealed_tokens="")
    return browser, back


def expired(browser: Client, back: str) -> tuple[Client, str]:
    McpSignIn.objects.update(state_until=Now() - timedelta(seconds=1))
    return browser, back


def begun_again(browser: Client, back: str) -> tuple[Client, str]:
    sent_away(browser, McpServer.objects.get())
    return browser, back


def with_other(name: str, value: str) -> Any:
    def act(browser: Client, back: str) -> tuple[Client, str]:
        parts = urlsplit(back)
        query = "&".join(f"{key}={value if key == name else said[0]}" for key, said in parse_qs(parts.query).items())
        return browser, parts._replace(query=query).geturl()

    return act


def without(name: str) -> Any:
    def act(browser: Client, back: str) -> tuple[Client, str]:
        parts = urlsplit(back)
        query = "&".join(each for each in parts.query.split("&") if not each.startswith(f"{name}="))
        return browser, parts._replace(query=query).geturl()

    return act


STOLEN = with_other("code", "stolen")
WAYS = [
    *(other, replayed, expired, begun_again),
    *(with_other("state", "x" * 43), with_other("state", ""), without("state")),
    *(with_other("iss", "http://evil.example"), with_other("iss", ""), without("iss")),
    *(STOLEN, with_other("code", ""), without("code")),
]


@pytest.mark.parametrize("way", WAYS)
def test_nobody_is_signed_in_by_an_answer_that_is_not_theirs(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, way: Any
) -> None:
    back = come_back(sent_away(browser, added(browser, fake)))
    who, where = way(browser, back)
    before = oauth.asked.count("/token")
    answer = who.get(where, follow=True)
    assert "You are signed in" not in answer.content.decode()
    assert not McpSignIn.objects.get().is_done
    assert "canary" not in answer.content.decode()
    if way is not STOLEN:
        assert oauth.asked.count("/token") == before


@pytest.mark.parametrize("says_who", [True, False])
def test_a_code_of_an_honest_host_goes_to_no_other(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, settings: Settings, says_who: bool
) -> None:
    """The server's own authorization server sends people to an honest one and waits for their code (RFC 9700, 4.4)."""
    with fake_oauth(fake.address) as evil:
        settings.WAYMARK_FETCH_PRIVATE.append(evil.place)
        guard(fake, evil)
        evil.metadata["authorization_endpoint"] = f"{oauth.address}/authorize"
        server = added(browser, fake)
        assert f'for <b class="num">{evil.place}</b>' in shown(browser)
        away = sent_away(browser, server)
        asked = {key: said[0] for key, said in parse_qs(urlsplit(away).query).items()}
        oauth.clients[asked["client_id"]] = ("", [asked["redirect_uri"]])
        back = come_back(away) if says_who else without("iss")(browser, come_back(away))[1]
        assert "another server than the one" in browser.get(back, follow=True).content.decode()
        assert "/token" not in evil.asked
        assert not McpSignIn.objects.get().is_done


def test_what_went_wrong_there_is_said_in_known_words_only(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    for error, words in (("access_denied", "(access_denied)"), ("<b>canary", "")):
        away = sent_away(browser, McpServer.objects.first() or added(browser, fake))
        state = parse_qs(urlsplit(away).query)["state"][0]
        said = {"error": error, "error_description": "canary", "state": state, "iss": oauth.address}
        page = browser.get(reverse("mcp_signed_in"), said, follow=True).content.decode()
        assert f"did not sign you in{words and ' ' + words}." in page
        assert "canary" not in page


def test_back_leads_only_who_is_signed_in_here(fake: FakeMcp, oauth: FakeOAuth) -> None:
    assert Client().get(reverse("mcp_signed_in"), {"state": "x", "code": "y"}).status_code == 302


def test_one_answer_of_a_user_is_taken_at_a_time(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may hold a thread for as long as an authorization server likes (threat T16)."""
    said = []

    def meanwhile(*_: Any) -> None:
        said.append(browser.get(reverse("mcp_signed_in"), follow=True).content.decode())
        raise SignInFailed("x")

    monkeypatch.setattr("tools.mcp.signing_in.finish", meanwhile)
    browser.get(reverse("mcp_signed_in"))
    (page,) = said  # not a bare refusal: another server has sent them here
    assert "Try again in a moment" in page
    assert "Add a server" in page


def test_signing_in_to_servers_of_others_is_none(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    server = added(browser, fake)
    stranger, _ = other(browser, "")
    for name in ("mcp_sign_in", "mcp_sign_out", "mcp_edit"):
        assert stranger.post(reverse(name, args=[server.pk])).status_code == 404
    assert stranger.get(reverse("mcp_sign_in", args=[server.pk])).status_code == 404


def test_a_key_that_is_gone_is_said_and_not_an_error_of_ours(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, settings: Settings
) -> None:
    server = added(browser, fake)
    back = come_back(sent_away(browser, server))
    settings.FIELD_KEYS = []
    said = "the operator has to set WAYMARK_FIELD_KEYS"
    assert said in browser.get(back, follow=True).content.decode()
    assert said in browser.post(reverse("mcp_sign_in", args=[server.pk])).content.decode()


def test_what_takes_too_long_is_said_and_not_an_error_of_ours(
    browser: Client, fake: FakeMcp, oauth: FakeOAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = added(browser, fake)
    back = come_back(sent_away(browser, server))

    def too_long(work: Any, *_: Any) -> None:
        work.close()
        raise TimeoutError

    monkeypatch.setattr("tools.mcp.signing_in.loop.ask", too_long)
    assert "It took too long." in browser.get(back, follow=True).content.decode()
    assert "It took too long." in browser.post(reverse("mcp_sign_in", args=[server.pk])).content.decode()
    assert signing_in.look_for(server, "").endswith("It took too long.")


def test_tokens_that_come_for_nobody_are_given_back(browser: Client, fake: FakeMcp, oauth: FakeOAuth) -> None:
    """The server was moved while its user was on the way back."""
    server = added(browser, fake)
    back = come_back(sent_away(browser, server))
    oauth.goes_on.clear()
    with ThreadPoolExecutor(1) as threads:
        coming = threads.submit(browser.get, back, follow=True)
        assert becomes(lambda: bool(oauth.refreshing))
        services.edit(server, services.Changes(url=f"{fake.address}/other"))
        oauth.goes_on.set()
        assert "Begin it again" in coming.result(20).content.decode()
    assert oauth.revoked.wait(10)
    assert oauth.refreshing == {}
