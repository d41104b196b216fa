"""What the web server itself must refuse, before Django sees the request. Asked over real sockets."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.processes import web

pytestmark = pytest.mark.django_db  # of the process, not of the tests: it is what has the database made

@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with web() as found:
        yield found


def status_of(address: str, head: str) -> int:
    """Send the head of a request as it is; return the status of the answer."""
    place = urlsplit(address)
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=10) as client:
        client.sendall(f"{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return int(client.recv(64).split()[1])


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
