"""The connection to a vendor: HTTP/1.1 on one socket per client, which another thread can cut.

The transport of httpx2 takes several times the CPU time for it (docs/performance). Closing a response does not wake a
thread that waits in `recv`, shutting the socket down does; so the socket must be known from before it is connected. The
proxies of the environment are ignored on purpose: local servers cannot be reached through them, and a key must not pass
a proxy that nobody chose in Waymark's settings.
"""

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx2

from agents.providers import addresses
from agents.providers.exchange import Exchange, mapped
from tools import tls

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 30.0
KEEP_SECONDS = 30.0

type Origin = tuple[str, bytes]


class Line:
    """What a run holds of its client's connection, to end a wait from outside."""

    def __init__(self) -> None:
        self._cut = False
        self._socket: socket.socket | None = None

    def ready(self) -> None:
        """Begin a call."""
        self._cut = False

    def hold(self, held: socket.socket) -> None:
        """Raises: httpx2.ConnectError when the line was cut meanwhile."""
        self._socket = held
        if self._cut:
            raise httpx2.ConnectError("cut")

    def limit(self, seconds: float) -> None:
        """Wait at most this long for each further read of the answer that comes now."""
        if self._socket is not None:
            self._socket.settimeout(seconds)

    def cut(self) -> None:
        """End whatever the call waits for. Any thread, any time; never raises."""
        self._cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # The method of the plain socket: TLS would first take its state apart under the reader's feet.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _dial(url: httpx2.URL, line: Line, seconds: float | None, *, anywhere: bool) -> socket.socket:
    """Connect like `socket.create_connection`, but only where it is allowed, and hand every socket to the line before
    it is connected."""
    if url.scheme not in ("http", "https") or not url.host:
        raise httpx2.UnsupportedProtocol("neither http:// nor https://")
    secure, host, error = url.scheme == "https", url.raw_host.decode(), OSError("no address")
    with mapped(httpx2.ConnectTimeout, httpx2.ConnectError):
        for *kind, _, address in _places(host, url.port or (443 if secure else 80), anywhere=anywhere):
            try:
                connected = _connect(socket.socket(*kind), address, line, seconds)
            except OSError as failed:
                error = failed
            else:
                return _secure(connected, host, line) if secure else connected
        raise error


def _places(host: str, port: int, *, anywhere: bool) -> list[tuple[Any, ...]]:
    try:
        return addresses.resolve(host, port, anywhere=anywhere)
    except addresses.AddressRefused:
        raise httpx2.LocalProtocolError("it is inside a network where only staff may send this server") from None


def _connect(fresh: socket.socket, address: Any, line: Line, seconds: float | None) -> socket.socket:
    with _held(fresh, line):
        fresh.settimeout(seconds)
        fresh.connect(address)
        fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return fresh


def _secure(connected: socket.socket, host: str, line: Line) -> socket.socket:
    secured = tls.ssl_context().wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
    with _held(secured, line):
        secured.do_handshake()
    return secured


@contextlib.contextmanager
def _held(fresh: socket.socket, line: Line) -> Iterator[None]:
    try:
        line.hold(fresh)
        yield
    except BaseException:
        fresh.close()
        raise


def _has_news(idle: socket.socket) -> bool:
    """Whether an idle connection was closed, or says what nobody asked for."""
    poll = select.poll()
    poll.register(idle, select.POLLIN)
    return bool(poll.poll(0))


class Transport(httpx2.BaseTransport):
    """One exchange at a time, on a connection that hangs on `line` and is kept for the next. `anywhere`: as of
    `Endpoint`."""

    def __init__(self, line: Line, *, anywhere: bool) -> None:
        self._line = line
        self._anywhere = anywhere
        self._kept: tuple[Origin, float, socket.socket] | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises: httpx2.TransportError."""
        seconds, origin = request.extensions["timeout"], (request.url.scheme, request.url.netloc)
        held = self._take(origin) or _dial(request.url, self._line, seconds["connect"], anywhere=self._anywhere)
        exchange = Exchange(held, request.method, lambda idle: self._keep(origin, idle))
        try:
            return exchange.start(request, seconds)
        except BaseException:
            exchange.close()
            raise

    def close(self) -> None:
        """Hang up, also in the middle of an answer."""
        self._line.cut()
        self._take(None)

    def _keep(self, origin: Origin, idle: socket.socket) -> None:
        self._kept = origin, time.monotonic(), idle

    def _take(self, origin: Origin | None) -> socket.socket | None:
        """Return the idle connection if it leads to `origin` and still stands."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        leads_to, since, idle = kept
        if leads_to == origin and time.monotonic() - since < KEEP_SECONDS and not _has_news(idle):
            return idle
        idle.close()
        return None


def http_client(line: Line, idle_seconds: float, *, anywhere: bool) -> httpx2.Client:
    """Return a client whose one connection at a time hangs on `line`; a silence of `idle_seconds` is a time-out.
    `anywhere`: as of `Endpoint`.

    Answers are not to be compressed: a few megabytes may hold gigabytes, and events would be held back.
    """
    timeout = httpx2.Timeout(connect=CONNECT_SECONDS, read=idle_seconds, write=WRITE_SECONDS, pool=None)
    headers = {"Accept-Encoding": "identity"}
    transport = Transport(line, anywhere=anywhere)
    return httpx2.Client(transport=transport, timeout=timeout, headers=headers, trust_env=False)
