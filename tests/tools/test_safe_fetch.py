"""What the server opens when somebody else gives the address, and what it refuses (threat T9)."""

import _socket
import gzip
import itertools
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pytest_django import Settings

from tests.agents.providers import test_wire
from tests.agents.providers.test_transport import OK, Peer
from tests.agents.providers.test_wire import certificate
from tools import tls
from tools.addresses import is_global
from tools.cancel import Cancelled, CancelToken
from tools.safe_fetch import MOST_REDIRECTS, Fetched, FetchFailed, FetchRefused, safe_fetch

__all__ = ["certificate"]

type LeadsTo = Callable[..., list[str]]

LONG = 30
"""Seconds that only a fetch without an end would take."""

INSIDE = [
    # Of this machine, in figures of every kind.
    *("http://127.0.0.1/", "http://127.8.9.10/", "http://127.1/", "http://127.0.1/", "http://0/", "http://0.0.0.0/"),
    *("http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/"),
    *("http://0x7F.0x0.0x0.0x1/", "http://127.0x0.0.01/", "http://127.0.0.1./", "https://127.0.0.1/"),
    *("http://localhost/", "http://LOCALHOST/", "http://localhost./"),
    *("http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://127%2e0%2e0%2e1/", "http://%31%32%37.0.0.1/"),
    *("http://127.0.0.1#@example.com/", "http://127.0.0.1?@example.com/", "http://127.0.0.1:80/"),
    # Of its network, and of the clouds.
    *("http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/", "http://100.64.0.1/"),
    *(
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
    ),
    *("http://168.63.129.16/", "http://100.100.100.200/", "http://192.0.0.192/", "http://192.0.0.9/"),
    *("http://198.18.0.1/", "http://192.88.99.1/", "http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/"),
    *("http://224.0.0.1/", "http://239.255.255.250/", "http://240.0.0.1/", "http://255.255.255.255/"),
    # Of version 6, and those that hold one of version 4.
    *("http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::]/", "http://[fe80::1]/", "http://[fc00::1]/"),
    *(
        "http://[fd00:ec2::254]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://[3fff::1]/",
    ),
    *("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:a9fe:a9fe]/", "http://[::7f00:1]/"),
    *("http://[64:ff9b::7f00:1]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::a9fe:a9fe]/"),
    *("http://[2002:7f00:1::]/", "http://[2002:a9fe:a9fe::]/", "http://[2001:0:7f00:1::]/", "http://[2001:20::1]/"),
    *("http://[100::1]/", "http://[5f00::1]/", "http://[4000::1]/", "http://[::ffff:0:127.0.0.1]/"),
]
OTHER_PORTS = ["http://8.8.8.8:22/", "http://8.8.8.8:6379/", "https://8.8.8.8:8443/", "http://8.8.8.8:8080/"]
NONE = [
    *(
        "file:///etc/passwd",
        "gopher://8.8.8.8/",
        "ftp://8.8.8.8/",
        "javascript:alert(1)",
        "data:text/plain,x",
        "//8.8.8.8/",
    ),
    *("http://", "http:///path", "http://[::1", "http://8.8.8.8:99999/", "http://8.8.8.8:x/", "", "8.8.8.8"),
    *("http://user@8.8.8.8/", "http://user:password@8.8.8.8/", "http://@8.8.8.8/", "http://:@8.8.8.8/"),
    *(
        "http://example.com@127.0.0.1/",
        "http://8.8.8.8\\@127.0.0.1/",
        "http://8.8.8.8\\.example/",
        "http://8.8.8.8/a b",
    ),
    *("http://8.8.8.8/\r\nX: y", "http://8.8.8.8\t/", " http://8.8.8.8/", "http://8.8.8.8/\x00"),
]
OUTSIDE = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where something was connected to, which then does not answer."""
    places: list[Any] = []

    def connect(self: socket.socket, place: Any) -> None:
        places.append(place)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket.socket, "connect", connect)
    return places


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers, wherever something is connected to; a second passes in a hundredth of one."""

    def connect(self: socket.socket, place: Any) -> None:
        seconds = self.gettimeout() or 0.0
        time.sleep(seconds if seconds < 1 else seconds / 100)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures lead to where they say, and this machine's own name to it; there are no other names."""

    def looked_up(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        own = "127.0.0.1" if host.lower().rstrip(".") == "localhost" else host
        return _socket.getaddrinfo(own, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)


@pytest.fixture
def leads_to(monkeypatch: pytest.MonkeyPatch) -> LeadsTo:
    """Let the resolver give these answers, one after the other, whatever is asked; returns the hosts that were asked
    for."""

    def leads_to(*answers: str | Sequence[str]) -> list[str]:
        asked: list[str] = []
        left = [[each] if isinstance(each, str) else each for each in answers]

        def looked_up(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
            asked.append(host)
            found = left.pop(0) if len(left) > 1 else left[0]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

        monkeypatch.setattr(socket, "getaddrinfo", looked_up)
        return asked

    return leads_to


@pytest.fixture
def home(settings: Settings) -> Callable[[Peer], str]:
    """Open a peer on this machine as one of the private hosts; returns its address."""

    def home(peer: Peer) -> str:
        place = urlsplit(peer.url).netloc
        settings.WAYMARK_FETCH_PRIVATE = [*settings.WAYMARK_FETCH_PRIVATE, place]
        return f"http://{place}/"

    return home


def fetch(url: str) -> Fetched:
    return safe_fetch(url, CancelToken())


def body(content: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return OK + f"content-length: {len(content)}\r\n{lines}\r\n".encode() + content


def redirect(to: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode()


@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize("address", INSIDE)
def test_what_is_inside_is_not_connected_to_however_it_is_written(address: str, connected: list[Any]) -> None:
    with pytest.raises(FetchFailed):
        fetch(address)
    assert connected == []


@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize("address", [*OTHER_PORTS, *NONE])
def test_other_ports_and_what_is_no_address_are_refused(address: str, connected: list[Any]) -> None:
    with pytest.raises(FetchRefused):
        fetch(address)
    assert connected == []


@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize("figure", OUTSIDE)
def test_the_internet_is_open(figure: str, connected: list[Any]) -> None:
    host = f"[{figure}]" if ":" in figure else figure
    with pytest.raises(FetchFailed, match=r"could not be reached \(Connection refused\)"):
        fetch(f"https://{host}/")
    assert [(place[0], place[1]) for place in connected] == [(figure, 443)]
    assert is_global(figure)


@pytest.mark.parametrize("host", ["xn--9ca.example", "é.example", "É.EXAMPLE"])
def test_a_name_in_other_letters_is_looked_up_as_what_it_is(host: str, leads_to: LeadsTo, connected: list[Any]) -> None:
    asked = leads_to("192.168.0.1")
    with pytest.raises(FetchRefused, match="inside a private network"):
        fetch(f"http://{host}/")
    assert (asked, connected) == (["xn--9ca.example"], [])


@pytest.mark.parametrize("answer", [["10.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::1"]])
def test_a_name_of_which_one_address_is_inside_is_not_followed(
    answer: list[str], leads_to: LeadsTo, connected: list[Any]
) -> None:
    leads_to(answer)
    with pytest.raises(FetchRefused):
        fetch("http://rebound.example/")
    assert connected == []


def test_a_name_is_looked_up_once_and_its_checked_address_is_used(leads_to: LeadsTo, connected: list[Any]) -> None:
    """What the resolver would answer to a second question is nobody's business (rebinding)."""
    asked = leads_to("8.8.8.8", "127.0.0.1")
    with pytest.raises(FetchFailed, match="could not be reached"):
        fetch("http://rebound.example/")
    assert (asked, connected) == (["rebound.example"], [("8.8.8.8", 80)])


def test_a_redirect_back_to_a_name_that_was_rebound_is_refused(leads_to: LeadsTo, settings: Settings) -> None:
    with Peer([redirect("http://rebound.example/")]) as peer:
        port = urlsplit(peer.url).port
        settings.WAYMARK_FETCH_PRIVATE = [f"home.example:{port}"]
        asked = leads_to("127.0.0.1", "127.0.0.1")
        with pytest.raises(FetchRefused, match=r"rebound\.example is inside"):
            fetch(f"http://home.example:{port}/")
        assert len(peer.requests) == 1
    assert asked == ["home.example", "rebound.example"]


@pytest.mark.usefixtures("figures")
@pytest.mark.parametrize(
    "to",
    [
        *("http://169.254.169.254/latest/meta-data/", "//169.254.169.254/", "http://[::ffff:169.254.169.254]/"),
        *("http://127.0.0.1/", "http://localhost:6379/", "http://2130706433/", "http://8.8.8.8:22/"),
        *("file:///etc/passwd", "gopher://8.8.8.8/", "http://user:password@8.8.8.8/", "http://[::1"),
    ],
)
def test_a_redirect_is_checked_like_the_address_itself(to: str, home: Callable[[Peer], str]) -> None:
    with Peer([redirect(to)]) as peer:
        with pytest.raises(FetchRefused):
            fetch(home(peer))
        assert len(peer.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed_to_where_the_page_is(status: int, home: Callable[[Peer], str]) -> None:
    with Peer([redirect("/a?b=c#d", status), redirect("e", status), body(b"here")]) as peer:
        found = fetch(f"{home(peer)}x/y#z")
        assert (found.body, urlsplit(found.url).path, found.status) == (b"here", "/e", 200)
        assert [head.split()[1] for _, head in peer.requests] == [b"/x/y", b"/a?b=c", b"/e"]


def test_redirects_that_lead_round_in_circles_end(home: Callable[[Peer], str]) -> None:
    with Peer([redirect("/again")] * (MOST_REDIRECTS + 1)) as peer:
        with pytest.raises(FetchFailed, match="more than 4 times"):
            fetch(home(peer))
        assert len(peer.requests) == MOST_REDIRECTS + 1


def test_what_is_said_to_one_host_is_not_said_to_another(home: Callable[[Peer], str]) -> None:
    with Peer([body(b"")]) as other, Peer([redirect("/same"), redirect(other.url)]) as peer:
        home(other)
        safe_fetch(home(peer), CancelToken(), headers={"X-Key": "canary"})
        assert [b"canary" in head for _, head in (*peer.requests, *other.requests)] == [True, True, False]


def test_an_address_of_the_operator_may_be_inside_and_nothing_that_it_redirects_to() -> None:
    with Peer([body(b"")]) as other, Peer([body(b"a"), redirect(other.url)]) as peer:
        assert safe_fetch(peer.url, CancelToken(), anywhere=True).body == b"a"
        with pytest.raises(FetchRefused):
            safe_fetch(peer.url, CancelToken(), anywhere=True)
        assert not other.requests


def test_only_the_private_hosts_that_staff_have_named_are_open(home: Callable[[Peer], str]) -> None:
    with Peer([body(b"mine")]) as mine, Peer([]) as other:
        assert fetch(home(mine)).body == b"mine"
        with pytest.raises(FetchRefused):
            fetch(other.url)


def test_the_proxies_of_the_environment_are_not_used(
    home: Callable[[Peer], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Peer([]) as proxy, Peer([body(b"direct")]) as peer:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch(home(peer)).body == b"direct"
        assert not proxy.requests


def test_the_host_is_asked_for_by_its_own_name(leads_to: LeadsTo, settings: Settings) -> None:
    leads_to("127.0.0.1")
    with Peer([body(b"")]) as peer:
        place = f"wiki.home:{urlsplit(peer.url).port}"
        settings.WAYMARK_FETCH_PRIVATE = [place]
        fetch(f"http://WIKI.home:{urlsplit(peer.url).port}/")
        assert f"host: {place}".encode() in peer.requests[0][1].lower()


def test_no_more_is_read_than_fits(home: Callable[[Peer], str], settings: Settings) -> None:
    settings.WAYMARK_FETCH_BYTES = 1_000
    endless = itertools.chain([OK + b"\r\n"], itertools.repeat(b"x" * 900))
    with Peer([endless, body(b"y" * 1_000), body(b"z" * 1_001)], hangs_up=[0, 1, 2]) as peer:
        found = [fetch(home(peer)) for _ in range(3)]
    assert [(len(each.body), each.is_whole) for each in found] == [(1_000, False), (1_000, True), (1_000, False)]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_what_is_packed_small_is_unpacked_no_further_than_fits(
    pack: Callable[[bytes], bytes], home: Callable[[Peer], str], settings: Settings
) -> None:
    bomb, page = pack(bytes(50_000_000)), pack(b"page")
    assert len(bomb) < 100_000
    with Peer([body(bomb, "content-encoding: gzip"), body(page, "content-encoding: deflate")]) as peer:
        found = fetch(home(peer))
        assert (len(found.body), found.is_whole) == (settings.WAYMARK_FETCH_BYTES, False)
        assert fetch(home(peer)).body == b"page"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (body(gzip.compress(gzip.compress(b"x")), "content-encoding: gzip, gzip"), "packed in a way"),
        (body(b"x", "content-encoding: br"), "packed in a way"),
        (body(b"not packed", "content-encoding: gzip"), "breaks off"),
        (body(gzip.compress(b"x" * 9_000)[:-9], "content-encoding: gzip"), "breaks off"),
        (body(gzip.compress(b"x")[:-1], "content-encoding: gzip"), "breaks off"),
        (body(zlib.compress(b"x")[:5], "content-encoding: deflate"), "breaks off"),
        (body(b"xx")[:-1], "breaks off"),
        (OK + b"transfer-encoding: chunked\r\n\r\n5\r\nxx", "breaks off"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "breaks off"),
        (OK + b"x: " + b"y" * 200_000, "breaks off"),
        (b"", "breaks off"),
    ],
)
def test_an_answer_that_is_none_is_said_to_be_so(answer: bytes, words: str, home: Callable[[Peer], str]) -> None:
    with Peer([answer], hangs_up=[0]) as peer, pytest.raises(FetchFailed, match=words):
        fetch(home(peer))


def test_nothing_at_all_is_whole_however_it_would_be_packed(home: Callable[[Peer], str]) -> None:
    with Peer([body(b"", "content-encoding: gzip")]) as peer:
        found = fetch(home(peer))
    assert (found.body, found.is_whole) == (b"", True)


@pytest.mark.usefixtures("silent")
def test_a_host_that_does_not_answer_is_named_with_how_long_it_was_waited_for(leads_to: LeadsTo) -> None:
    leads_to("8.8.8.8")
    with pytest.raises(FetchFailed) as caught:
        fetch("http://silent.example/")
    assert str(caught.value) == "silent.example could not be reached (it did not answer within 4 seconds)."


@pytest.mark.usefixtures("silent")
def test_each_address_of_a_host_is_waited_for_until_the_time_is_over(leads_to: LeadsTo, settings: Settings) -> None:
    settings.WAYMARK_FETCH_SECONDS = 0.3
    leads_to(["8.8.8.8", "1.1.1.1"])
    with pytest.raises(FetchFailed) as caught:
        fetch("http://silent.example/")
    assert str(caught.value) == "silent.example took longer than 0.3 seconds."


def test_an_error_is_an_answer_too(home: Callable[[Peer], str]) -> None:
    with Peer([b"HTTP/1.1 404 Not Found\r\nContent-Type: Text/HTML\r\ncontent-length: 4\r\n\r\ngone"]) as peer:
        found = fetch(home(peer))
    assert (found.status, found.content_type, found.body) == (404, "text/html", b"gone")


def drip(first: bytes) -> Iterator[bytes]:
    yield first
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        time.sleep(0.05)
        yield b"x"


@pytest.mark.parametrize(
    "first",
    [
        OK,  # the head has no end
        OK + b"\r\n",
        OK + b"content-length: 900000\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nd0000\r\n",
        OK + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"", mtime=0)[:10] + b"\x00\xff\xff\x00\x00",
    ],
)
def test_a_drip_does_not_set_the_clock_back(first: bytes, home: Callable[[Peer], str], settings: Settings) -> None:
    settings.WAYMARK_FETCH_SECONDS = 0.5
    with Peer([drip(first)]) as peer:
        began = time.monotonic()
        with pytest.raises(FetchFailed, match=r"longer than 0\.5 seconds"):
            fetch(home(peer))
        assert time.monotonic() - began < LONG / 2


def test_redirects_do_not_set_the_clock_back(home: Callable[[Peer], str], settings: Settings) -> None:
    settings.WAYMARK_FETCH_SECONDS = 1

    def late() -> Iterator[bytes]:
        time.sleep(0.4)
        yield redirect("/again")

    with Peer([late() for _ in range(5)]) as peer:
        with pytest.raises(FetchFailed, match="longer than 1 seconds"):
            fetch(home(peer))
        assert len(peer.requests) <= 3


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The resolver does not answer."""
    free = threading.Event()

    def looked_up(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        free.wait(LONG)
        raise socket.gaierror("too late")

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    yield
    free.set()


@pytest.mark.usefixtures("stuck")
def test_a_look_up_without_an_answer_ends_in_time(settings: Settings) -> None:
    settings.WAYMARK_FETCH_SECONDS = 0.3
    with pytest.raises(FetchFailed, match="longer than"):
        fetch("http://slow.example/")


@pytest.mark.usefixtures("stuck")
def test_a_look_up_can_be_cancelled() -> None:
    _assert_cancelled("http://slow.example/")


@pytest.mark.parametrize("first", [b"", OK, OK + b"\r\n", OK + b"content-length: 9\r\n\r\nab"])
def test_a_silent_server_can_be_cancelled(first: bytes, home: Callable[[Peer], str]) -> None:
    """One that names no length as well, whose answer would else end there, as if it were whole."""
    over = threading.Event()

    def silence() -> Iterator[bytes]:
        yield first
        over.wait(LONG)

    with Peer([silence()]) as peer:
        _assert_cancelled(home(peer))
        over.set()


def _assert_cancelled(url: str) -> None:
    cancel = CancelToken()
    threading.Timer(0.2, cancel.cancel, ["stop"]).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        safe_fetch(url, cancel)
    assert time.monotonic() - began < LONG / 2


def test_what_is_cancelled_before_is_not_begun(connected: list[Any]) -> None:
    cancel = CancelToken()
    cancel.cancel("stop")
    with pytest.raises(Cancelled):
        safe_fetch("http://8.8.8.8/", cancel)
    assert connected == []


@pytest.fixture
def secure(certificate: Path) -> Iterator[int]:
    """A server of pages over TLS, with a certificate for 127.0.0.1; returns its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    peer = test_wire.Peer(body(b"safe"), closes=True, context=context)
    yield peer.port
    peer.close()


@pytest.fixture
def trusting(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(tls, "ssl_context", lambda: client)


@pytest.mark.usefixtures("trusting")
def test_a_page_comes_over_tls(secure: int, settings: Settings) -> None:
    settings.WAYMARK_FETCH_PRIVATE = [f"127.0.0.1:{secure}"]
    assert fetch(f"https://127.0.0.1:{secure}/").body == b"safe"


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: int, settings: Settings) -> None:
    settings.WAYMARK_FETCH_PRIVATE = [f"127.0.0.1:{secure}"]
    with pytest.raises(FetchFailed, match="valid certificate"):
        fetch(f"https://127.0.0.1:{secure}/")


@pytest.mark.usefixtures("trusting")
def test_a_certificate_of_the_checked_address_does_not_vouch_for_the_host(
    secure: int, settings: Settings, leads_to: LeadsTo
) -> None:
    leads_to("127.0.0.1")
    settings.WAYMARK_FETCH_PRIVATE = [f"bank.example:{secure}"]
    with pytest.raises(FetchFailed, match="valid certificate"):
        fetch(f"https://bank.example:{secure}/")


@pytest.mark.usefixtures("trusting")
def test_a_handshake_ends_in_time(settings: Settings) -> None:
    settings.WAYMARK_FETCH_SECONDS = 0.5
    peer = test_wire.Peer(b"", closes=False)
    settings.WAYMARK_FETCH_PRIVATE = [f"127.0.0.1:{peer.port}"]
    with pytest.raises(FetchFailed, match="longer than"):
        fetch(f"https://127.0.0.1:{peer.port}/")
    peer.close()
