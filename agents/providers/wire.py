"""The connection to a vendor: one socket per client, which another thread can cut.

Closing a response does not wake a thread that waits in `recv`, shutting the socket down does; so the socket must be
known from before it is connected. The proxies of the environment are ignored on purpose: local servers cannot be
reached through them, and a key must not pass a proxy that nobody chose in Waymark's settings.
"""

import contextlib
import functools
import select
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore2
import httpx2

CONNECT_SECONDS = 10.0
KEEP_SECONDS = 30.0
# No honest answer to one call is longer; a server that sends without end must not fill the memory. Bytes.
LONGEST_ANSWER = 32_000_000


_lock = threading.Lock()


def ssl_context() -> ssl.SSLContext:
    """The process's one context, because making it takes 20 ms, and 200 runs may begin at once. It trusts what the
    system trusts."""
    with _lock:
        return _ssl_context()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    return httpcore2.default_ssl_context()


class Line:
    """What a run holds of its client's connection, to end a wait from outside."""

    def __init__(self) -> None:
        self.read_limit: float | None = None
        self.received = 0
        self._cut = False
        self._socket: socket.socket | None = None

    def ready(self) -> None:
        """Begin a call."""
        self._cut = False
        self.read_limit = None
        self.received = 0

    def hold(self, held: socket.socket) -> None:
        """Raises: httpcore2.ConnectError when the line was cut meanwhile."""
        self._socket = held
        if self._cut:
            held.close()
            raise httpcore2.ConnectError("cut")

    def cut(self) -> None:
        """End whatever the call waits for. Any thread, any time; never raises."""
        self._cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # The method of the plain socket: TLS would first take its state apart under the reader's feet.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@contextlib.contextmanager
def _mapped(timeout: type[Exception], other: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise timeout(str(error)) from error
    except OSError as error:
        raise other(str(error)) from error


class Connection(httpcore2.NetworkStream):
    def __init__(self, connected: socket.socket, line: Line) -> None:
        self._socket = connected
        self._line = line

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit = self._line.read_limit
        try:  # Not `_mapped`: this runs once for every piece of every answer.
            self._socket.settimeout(timeout if limit is None else limit)
            data = self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error
        self._line.received += len(data)
        if self._line.received > LONGEST_ANSWER:
            raise httpcore2.ReadError(f"the answer is longer than {LONGEST_ANSWER // 1_000_000} MB")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _mapped(httpcore2.WriteTimeout, httpcore2.WriteError):
            self._socket.settimeout(timeout)
            self._socket.sendall(buffer)

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "Connection":
        with _mapped(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            self._socket.settimeout(timeout)
            secured = ssl_context.wrap_socket(
                self._socket, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._line.hold(secured)
            try:
                secured.do_handshake()
            except BaseException:
                secured.close()
                raise
        return Connection(secured, self._line)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "socket":
                return self._socket
            case "ssl_object" if isinstance(self._socket, ssl.SSLSocket):
                return self._socket
            case "is_readable":
                return self._is_readable()
            case _:
                return None

    def _is_readable(self) -> bool:
        if self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))


class Dialler(httpcore2.SyncBackend):
    """Connects like `socket.create_connection`, but hands every socket to the line before it is connected."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Connection:
        error: Exception = httpcore2.ConnectError("no address")
        with _mapped(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in addresses:
            try:
                return self._connect(socket.socket(family, kind, protocol), address, timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as failed:
                error = failed
        raise error

    def _connect(self, fresh: socket.socket, address: Any, timeout: float | None) -> Connection:
        self._line.hold(fresh)
        try:
            with _mapped(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                fresh.settimeout(timeout)
                fresh.connect(address)
                fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            fresh.close()
            raise
        return Connection(fresh, self._line)


def http_client(line: Line, idle_seconds: float) -> httpx2.Client:
    """Return a client whose one connection at a time hangs on `line`; a silence of `idle_seconds` is a time-out."""
    transport = httpx2.HTTPTransport(verify=ssl_context(), trust_env=False)
    # The transport has no argument for its backend; the pool below has, and is what it would build itself.
    transport._pool = httpcore2.ConnectionPool(
        ssl_context=ssl_context(), keepalive_expiry=KEEP_SECONDS, network_backend=Dialler(line)
    )
    timeout = httpx2.Timeout(connect=CONNECT_SECONDS, read=idle_seconds, write=30.0, pool=CONNECT_SECONDS)
    return httpx2.Client(transport=transport, timeout=timeout, trust_env=False)
