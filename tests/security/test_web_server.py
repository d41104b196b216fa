"""What the web server itself must refuse, before Django sees the request. Asked over real sockets."""

from collections.abc import Iterator

import pytest

from tests.processes import web
from tests.security.asking import status_of

pytestmark = pytest.mark.django_db  # of the process, not of the tests: it is what has the database made


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with web() as found:
        yield found


@pytest.mark.parametrize("name", ["Daphne-Root-Path", "daphne-root-path"])
@pytest.mark.parametrize("path", ["/x/metrics", "/x/admin/login/", "/x/accounts/login/"])
def test_a_stranger_does_not_move_the_addresses(address: str, name: str, path: str) -> None:
    """A proxy in front that refuses /metrics or /admin/ must not be passed under another name."""
    assert status_of(address, f"GET {path} HTTP/1.1\r\n{name}: /x") == 404


def test_a_stranger_does_not_move_the_websocket(address: str) -> None:
    upgrade = (
        "GET /x/ws/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: {address}\r\nDaphne-Root-Path: /x"
    )
    assert status_of(address, upgrade) != 101


def test_a_session_key_that_cannot_be_one_does_not_break_the_websocket(address: str) -> None:
    upgrade = (
        "GET /ws/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: {address}\r\n"
        'Cookie: sessionid="\\000abcdefghij"'
    )
    assert status_of(address, upgrade) == 101
