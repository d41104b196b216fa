"""Where a server may send people to sign in, and where not (threat T9)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from memory.pool import orm
from tests.factories import UserFactory
from tests.mcp_server import FakeMcp, fake_mcp
from tests.oauth_server import FakeOAuth, fake_oauth, guard
from tools.mcp import services, signing_in
from tools.mcp.failures import SignInFailed
from tools.mcp.models import McpServer, McpSignIn

pytestmark = pytest.mark.django_db(transaction=True)
RESOURCE = "/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
def fake() -> Iterator[FakeMcp]:
    with fake_mcp() as served:
        yield served


@pytest.fixture
def oauth(fake: FakeMcp, settings: Settings) -> Iterator[FakeOAuth]:
    with fake_oauth(fake.address) as served:
        settings.WAYMARK_FETCH_PRIVATE = [fake.place, served.place]
        guard(fake, served)
        yield served


def looked_at(fake: FakeMcp) -> McpServer:
    return services.check(services.add(UserFactory(), services.Named("shop", fake.address)))


def test_it_is_found_by_the_usual_place_too(fake: FakeMcp, oauth: FakeOAuth) -> None:
    fake.challenge = ""
    assert looked_at(fake).error == ""
    assert McpSignIn.objects.get().host == oauth.place


def test_a_server_may_be_its_own_authorization_server(fake: FakeMcp, oauth: FakeOAuth) -> None:
    """As servers of the version 2025-03-26 are."""
    fake.challenge, origin = "", fake.address.removesuffix("/mcp")
    said = oauth.document() | {"issuer": origin}
    fake.documents = {"/.well-known/oauth-authorization-server": said}
    assert looked_at(fake).error == ""
    assert McpSignIn.objects.get().found["resource"] == fake.address


def test_a_server_that_only_wants_a_key_is_not_signed_in_to(fake: FakeMcp, oauth: FakeOAuth) -> None:
    fake.challenge, fake.documents = 'Basic realm="x"', {}
    assert "wants credentials" in looked_at(fake).error
    assert not McpSignIn.objects.exists()


INSIDE = ["http://127.0.0.1:1", "https://127.0.0.1", "https://127.0.0.1:8443", "https://localhost", "https://[::1]"]
NOT_THERE = re.compile("private network|Only the ports|https:// only|user name or a password")


@pytest.mark.parametrize("where", INSIDE)
def test_nothing_inside_is_asked_where_to_sign_in(fake: FakeMcp, oauth: FakeOAuth, where: str) -> None:
    fake.challenge = f'Bearer resource_metadata="{where}/x"'
    assert NOT_THERE.search(looked_at(fake).error)
    assert not McpSignIn.objects.exists()


@pytest.mark.parametrize("where", INSIDE)
def test_nothing_inside_is_an_authorization_server(fake: FakeMcp, oauth: FakeOAuth, where: str) -> None:
    fake.documents[RESOURCE]["authorization_servers"] = [where]
    assert NOT_THERE.search(looked_at(fake).error)
    assert not McpSignIn.objects.exists()


@pytest.mark.parametrize("where", [*INSIDE, "http://auth.example.org", "https://me:canary@auth.example.org"])
@pytest.mark.parametrize("end", ["authorization", "token", "registration", "revocation"])
def test_nothing_inside_and_nothing_in_the_clear_is_an_end_of_it(
    fake: FakeMcp, oauth: FakeOAuth, where: str, end: str
) -> None:
    oauth.metadata[f"{end}_endpoint"] = f"{where}/x"
    server = looked_at(fake)
    for row in McpSignIn.objects.all():  # one that is https may be inside: that is found when it is opened
        assert where.startswith("https:")
        assert end != "authorization"
        if end == "registration":
            with pytest.raises(SignInFailed, match=NOT_THERE):
                signing_in.begin(row.server, signing_in.Us("http://testserver/back"))
        return
    assert NOT_THERE.search(server.error)
    assert "canary" not in server.error


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"issuer": "https://other.example.org"}, "another one"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "does not say how"),
        ({"token_endpoint": None}, "does not say how"),
        ({"service_documentation": "https://x.example/", "ui_locales_supported": ["\x00"]}, "that is no text"),
    ],
)
def test_an_authorization_server_that_is_not_what_it_says_is_none(
    fake: FakeMcp, oauth: FakeOAuth, metadata: dict[str, Any], why: str
) -> None:
    oauth.metadata |= metadata
    assert why in looked_at(fake).error
    assert not McpSignIn.objects.exists()


ELSEWHERE = "https://auth.example.org/x"


@pytest.mark.parametrize(
    "ends",
    [
        {"authorization_endpoint": ELSEWHERE},
        {"token_endpoint": ELSEWHERE},
        {"authorization_endpoint": ELSEWHERE, "token_endpoint": ELSEWHERE},
    ],
)
def test_nobody_is_sent_to_another_host_that_does_not_say_whose_its_answers_are(
    fake: FakeMcp, oauth: FakeOAuth, ends: dict[str, str]
) -> None:
    """A mix-up (RFC 9700, 4.4)."""
    oauth.metadata = {**ends, "authorization_response_iss_parameter_supported": None}
    assert "does not say whose answer it is" in looked_at(fake).error
    assert not McpSignIn.objects.exists()


def test_nobody_signs_in_for_another_server(fake: FakeMcp, oauth: FakeOAuth) -> None:
    fake.documents[RESOURCE]["resource"] = "https://bank.example.org/mcp"
    assert "for another server" in looked_at(fake).error
    assert not McpSignIn.objects.exists()


def test_a_whole_host_is_signed_in_for_only_where_it_says_so_itself(fake: FakeMcp, oauth: FakeOAuth) -> None:
    """One of those that share it would get tokens for all of them (RFC 9728, 3.3)."""
    origin = fake.address.removesuffix("/mcp")
    said = fake.documents[RESOURCE]
    said["resource"] = origin
    assert "for another server" in looked_at(fake).error
    assert not McpSignIn.objects.exists()
    fake.documents = {"/.well-known/oauth-protected-resource": said}
    fake.challenge = ""
    assert looked_at(fake).error == ""
    assert McpSignIn.objects.get().found["resource"].rstrip("/") == origin


def test_nobody_signs_in_to_a_server_in_the_clear(fake: FakeMcp, oauth: FakeOAuth) -> None:
    server = services.add(UserFactory(), services.Named("shop", "http://tools.example.org/mcp"))
    assert "https:// only" in signing_in.look_for(server, fake.challenge)


def test_where_one_signs_in_is_not_kept_of_another_address(
    fake: FakeMcp, oauth: FakeOAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was moved while it was asked."""
    server, said = services.add(UserFactory(), services.Named("shop", fake.address)), oauth.document()

    def move() -> dict[str, Any]:
        with orm():
            services.edit(server, services.Changes(url="https://other.example.org/mcp"))
        return said

    monkeypatch.setattr(oauth, "document", move)
    services.check(server)
    assert not McpSignIn.objects.exists()


def test_who_we_were_to_one_is_nothing_for_another(fake: FakeMcp, oauth: FakeOAuth, settings: Settings) -> None:
    """A server that changes its authorization server gets neither the client nor the tokens of the old one."""
    server = looked_at(fake)
    McpSignIn.objects.update(sealed_client="old")
    with fake_oauth(fake.address) as second:
        settings.WAYMARK_FETCH_PRIVATE.append(second.place)
        guard(fake, second)
        services.check(McpServer.objects.get(pk=server.pk))
        row = McpSignIn.objects.get()
        assert (row.host, row.sealed_client) == (second.place, "")
