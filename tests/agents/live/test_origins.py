"""Which origins may open a websocket."""

import pytest
from django.test import override_settings

from agents.live.origins import is_allowed


def scope(
    origin: str | None, host: str | None = "waymark.example", scheme: str = "ws", **headers: str
) -> dict[str, object]:
    named = {"host": host, "origin": origin, **headers}
    return {
        "scheme": scheme,
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in named.items() if value is not None
        ],
    }


@pytest.fixture(autouse=True)
def hosts() -> object:
    with override_settings(
        ALLOWED_HOSTS=["waymark.example", "127.0.0.1", "[::1]"],
        CSRF_TRUSTED_ORIGINS=["https://trusted.example", "https://*.wild.example", "https://port.example:8443"],
        SECURE_PROXY_SSL_HEADER=None,
        DEBUG=False,
    ):
        yield


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://waymark.example", "waymark.example"),
        ("http://waymark.example", "waymark.example:80"),
        ("http://WAYMARK.example", "waymark.EXAMPLE"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("https://trusted.example", "waymark.example"),
        ("https://a.wild.example", "waymark.example"),
        ("https://port.example:8443", "waymark.example"),
    ],
)
def test_this_site_and_trusted_origins_are_let_in(origin: str, host: str) -> None:
    assert is_allowed(scope(origin, host))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "waymark.example"),
        ("", "waymark.example"),
        ("null", "waymark.example"),
        ("http://evil.example", "waymark.example"),
        ("http://evil.example", "evil.example"),
        ("http://waymark.example.evil.example", "waymark.example"),
        ("http://evilwaymark.example", "waymark.example"),
        ("http://sub.waymark.example", "waymark.example"),
        ("https://waymark.example", "waymark.example"),
        ("http://waymark.example:8001", "waymark.example"),
        ("http://127.0.0.1:9999", "127.0.0.1:8000"),
        ("http://waymark.example@evil.example", "waymark.example"),
        ("http://user:pw@waymark.example", "waymark.example"),
        ("http://waymark.example/path", "waymark.example"),
        ("http://waymark.example:x", "waymark.example"),
        ("http://[::1", "[::1]:8000"),
        ("ftp://waymark.example", "waymark.example"),
        ("file://", "waymark.example"),
        ("http://trusted.example", "waymark.example"),
        ("https://trusted.example:444", "waymark.example"),
        ("https://wild.example.evil.example", "waymark.example"),
        ("https://a.wild.example.evil", "waymark.example"),
        ("https://port.example", "waymark.example"),
        ("http://waymark.example", None),
    ],
)
def test_all_others_are_refused(origin: str | None, host: str | None) -> None:
    assert not is_allowed(scope(origin, host))


def test_two_origins_are_refused() -> None:
    twice = scope("http://waymark.example")
    twice["headers"] = [*twice["headers"], (b"Origin", b"http://waymark.example")]  # type: ignore[misc]
    assert not is_allowed(twice)


def test_a_secure_socket_needs_a_secure_page() -> None:
    assert is_allowed(scope("https://waymark.example", scheme="wss"))
    assert not is_allowed(scope("http://waymark.example", scheme="wss"))


@override_settings(SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"))
def test_behind_a_proxy_the_browsers_scheme_counts() -> None:
    assert is_allowed(scope("https://waymark.example", x_forwarded_proto="https"))
    assert not is_allowed(scope("http://waymark.example", x_forwarded_proto="https"))
    assert not is_allowed(scope("https://waymark.example", x_forwarded_proto="http"))


def test_the_scheme_that_a_stranger_claims_does_not_count_without_a_proxy() -> None:
    assert not is_allowed(scope("https://waymark.example", x_forwarded_proto="https"))
