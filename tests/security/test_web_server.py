"""What the web server itself must refuse, before Django sees the request. Asked over real sockets."""

import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from memory.models import Attachment
from tests.factories import GoalFactory, bearer
from tests.pictures import noise
from tests.processes import answers, free_port, running, wait_until, web
from tests.security.asking import status_of

pytestmark = [pytest.mark.programs, pytest.mark.django_db(transaction=True)]


SOMEBODY = ("127.0.0.2", 0)  # not taken for a proxy


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with web(WAYMARK_REQUEST_SECONDS="2", WAYMARK_CONNECTIONS_PER_ADDRESS="5") as found:
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


BODY = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: "


@pytest.mark.parametrize("begin", [b"", b"GET /", HEAD, BODY])
def test_a_request_that_comes_byte_by_byte_is_ended(address: str, begin: bytes) -> None:
    with connected(address) as line:
        line.sendall(begin)
        assert ended_within(line, 20, drip=b"x")


def test_an_answer_may_take_longer_than_a_request(address: str) -> None:
    """Of a page as of a stream: what has come in is not waited for any more."""
    goal = GoalFactory.create()
    token = bearer(goal.user)["Authorization"]
    with connected(address) as line:
        line.sendall(f"GET /api/v1/goals/{goal.pk}/events HTTP/1.1\r\nHost: localhost\r\n".encode())
        line.sendall(f"Authorization: {token}\r\n\r\n".encode())
        assert b"200 OK" in line.recv(64)
        assert not ended_within(line, 5)


def test_one_address_has_so_many_connections_and_no_more(address: str) -> None:
    with ExitStack() as lines:
        first = [lines.enter_context(connected(address, SOMEBODY)) for _ in range(5)]
        assert is_hung_up_on(address)
        with connected(address) as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in other.recv(64)
        first[0].close()
        wait_until(lambda: is_served(address))


@pytest.mark.parametrize(
    ("kind", "length", "status"),
    [
        ("application/json", 2_600_000, 413),
        ("multipart/form-data; boundary=b", 20_000_000, 100),
        ("Multipart/Form-Data; boundary=b", 22_600_000, 413),
    ],
)
def test_only_files_may_be_large_and_not_too_large(address: str, kind: str, length: int, status: int) -> None:
    head = f"POST /api/v1/goals HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nExpect: 100-continue"
    assert status_of(address, head) == status


def test_a_phone_has_time_to_send_a_photo(address: str) -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    with connected(address) as slow, connected(address) as short:
        slow.sendall(head + b"Content-Length: 2000000\r\n\r\n")
        short.sendall(head + b"Content-Length: 20000\r\n\r\n")
        assert ended_within(short, 20, drip=b"x")
        assert not ended_within(slow, 3, drip=b"x")


def test_a_large_photo_arrives(address: str) -> None:
    goal = GoalFactory.create()
    data = noise(1_400, 1_400)
    body = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n' + data + b"\r\n--b--\r\n"
    headers = bearer(goal.user) | {"Content-Type": "multipart/form-data; boundary=b"}
    url = f"{address}/api/v1/goals/{goal.pk}/messages"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
        assert answer.status == 202
    stored = Attachment.objects.get()
    assert len(data) > 7_000_000
    assert stored.size <= 3_500_000


@pytest.fixture
def breaking() -> Iterator[str]:
    """The web server with an application that fails: tests/security/breaking.py."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with running("-m", "tests.security.breaking", str(port), DJANGO_SETTINGS_MODULE="config.settings"):
        wait_until(lambda: answers(f"{address}/connections"))
        yield address


@pytest.mark.parametrize("path", ["/begun", "/unanswerable"])
def test_what_fails_after_its_beginning_ends_and_nothing_else_does(breaking: str, path: str) -> None:
    with connected(breaking) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert b"200 OK" in line.recv(64)
        assert ended_within(line, 20)
    for _ in range(2):
        assert status_of(breaking, "GET /fails HTTP/1.1") == 500
    wait_until(lambda: connections_of(breaking) == 1)


def connections_of(address: str) -> int:
    """How many requests the server still knows, with this one."""
    with urllib.request.urlopen(f"{address}/connections", timeout=10) as answer:
        return int(answer.read())


def is_hung_up_on(address: str) -> bool:
    """The end may come before the caller knows that there was a beginning."""
    try:
        with connected(address, SOMEBODY) as line:
            return ended_within(line, 20)
    except ConnectionResetError:
        return True


def is_served(address: str) -> bool:
    try:
        with connected(address, SOMEBODY) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return b"200 OK" in line.recv(64)
    except OSError:
        return False


def connected(address: str, source: tuple[str, int] | None = None) -> socket.socket:
    place = urlsplit(address)
    return socket.create_connection((str(place.hostname), place.port or 0), 10, source_address=source)


def ended_within(line: socket.socket, seconds: float, drip: bytes = b"") -> bool:
    """Whether the other side ends a connection on which a byte is sent, and what comes is read, now and then."""
    until = time.monotonic() + seconds
    line.settimeout(0.2)
    while time.monotonic() < until:
        try:
            line.sendall(drip)
            if not line.recv(65536):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False
