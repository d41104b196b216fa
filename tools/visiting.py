"""One visit to an address that somebody has given: where it leads is looked up once and checked, what was checked is
what is connected to, and all of it ends in time, or when it is cut.

This is the network below `httpcore2`; who visits is `tools.safe_fetch`.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any

import httpcore2

from tools import tls
from tools.addresses import check_global, check_port
from tools.cancel import CancelToken

# A host may have several addresses, and the first may not answer. Seconds.
CONNECT_SECONDS = 4.0

type Place = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


class Visit:
    """The time that is left, and the socket on which it is spent.

    Args:
        seconds: for everything, from now on.
        inside: (host, port) of those that may be anywhere.

    has_spoken: whether something of a request has gone out.
    """

    def __init__(self, cancel: CancelToken, seconds: float, inside: Collection[tuple[str, int]]) -> None:
        self.cancel = cancel
        self.inside = inside
        self.has_spoken = False
        self._until = time.monotonic() + seconds
        self._held: socket.socket | None = None

    @property
    def left(self) -> float:
        """Raises: TimeoutError when no time is left; Cancelled."""
        self.cancel.check()
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def hold(self, held: socket.socket) -> None:
        """Name the socket that `cut` ends. Raises: Cancelled."""
        self._held = held
        self.cancel.check()

    def cut(self) -> None:
        """End whatever the visit waits for. Any thread, any time; never raises."""
        if self._held is not None:
            with contextlib.suppress(OSError):
                # The method of the plain socket: TLS would first take its state apart under the reader's feet.
                socket.socket.shutdown(self._held, socket.SHUT_RDWR)


class Network(httpcore2.NetworkBackend):
    """Connects to where a host was found to be, if that may be opened."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """The caller's options are not used: the visit has its own time, and nobody sets the others.

        Raises: AddressRefused, OSError, Cancelled.
        """
        error = OSError("it has no address")
        for place in self._places(host, port):
            try:
                return Stream(self._connected(place), self._visit)
            except OSError as failed:
                error = failed
        raise error

    def _places(self, host: str, port: int) -> Sequence[Place]:
        is_inside = (host, port) in self._visit.inside
        if not is_inside:
            check_port(port)
        found = in_time(lambda: _looked_up(host, port), self._visit)
        if not is_inside:
            check_global(host, (str(place[4][0]) for place in found))
        return found

    def _connected(self, place: Place) -> socket.socket:
        *kind, _, address = place
        fresh = socket.socket(*kind)
        try:
            self._visit.hold(fresh)
            fresh.settimeout(min(self._visit.left, CONNECT_SECONDS))
            self._connect(fresh, address)
        except BaseException:
            fresh.close()
            raise
        return fresh

    def _connect(self, fresh: socket.socket, address: Any) -> None:
        try:
            fresh.connect(address)
        except TimeoutError as error:
            if self._visit.left:  # else the whole visit took too long, which that raises
                raise OSError(f"it did not answer within {CONNECT_SECONDS:g} seconds") from error


class Stream(httpcore2.NetworkStream):
    """An open connection. No read, however little it brings, sets the clock back."""

    def __init__(self, held: socket.socket, visit: Visit) -> None:
        self._held = held
        self._visit = visit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._held.settimeout(self._visit.left)
        return self._held.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held.settimeout(self._visit.left)
        self._visit.has_spoken = True
        self._held.sendall(buffer)

    def close(self) -> None:
        self._held.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Raises: ssl.SSLCertVerificationError when it is not the host that was asked for."""
        name = (server_hostname or "").rstrip(".")
        secured = ssl_context.wrap_socket(self._held, server_hostname=name, do_handshake_on_connect=False)
        try:
            self._visit.hold(secured)
            secured.settimeout(self._visit.left)
            secured.do_handshake()
        except BaseException:
            secured.close()
            raise
        return Stream(secured, self._visit)

    def get_extra_info(self, info: str) -> Any:
        """Nothing is known that decides anything here: HTTP/2 is not offered, and no connection is used again."""
        return None


@contextlib.contextmanager
def answer(
    scheme: str,
    place: tuple[str, int],
    target: bytes,
    headers: Mapping[str, str],
    visit: Visit,
    sent: bytes | None = None,
) -> Iterator[httpcore2.Response]:
    """Ask a host at a port for what is at `target`, or POST something there; the body comes as it is read, within the
    block.

    Raises:
        AddressRefused: the host or its port is not for this server to open. The message says so in words.
        OSError: it is out of reach; TimeoutError: too slow; ssl.SSLCertVerificationError: somebody else.
        HTTPException: the answer breaks off, or is none.
        Cancelled: the visit was cut.
    """
    url = httpcore2.URL(scheme=scheme, host=place[0], port=place[1], target=target)
    connection = httpcore2.HTTPConnection(url.origin, tls.ssl_context(), network_backend=Network(visit))
    method = "GET" if sent is None else "POST"
    try:
        with connection, connection.stream(method, url, headers=[*headers.items()], content=sent) as given:
            yield given
    except httpcore2.ProtocolError as error:
        raise HTTPException(str(error)) from error


def _looked_up(host: str, port: int) -> Sequence[Place]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise socket.gaierror("it is no name") from None


def in_time[T](ask: Callable[[], T], visit: Visit) -> T:
    """Ask in a thread of its own, because a look-up can be given neither a time nor a signal to stop.

    Raises: TimeoutError; Cancelled; whatever `ask` raises.
    """
    answers: list[Callable[[], T]] = []
    is_over = threading.Event()

    def asked() -> None:
        try:
            answer = ask()
            answers.append(lambda: answer)
        except Exception as error:  # noqa: BLE001 (raised again by whoever waits for it)
            answers.append(_raising(error))
        is_over.set()

    threading.Thread(target=asked, daemon=True, name="look-up").start()
    with visit.cancel.on_cancel(is_over.set):
        is_over.wait(visit.left)
    visit.cancel.check()
    if not answers:
        raise TimeoutError
    return answers[0]()


def _raising(error: Exception) -> Callable[[], Any]:
    def again() -> Any:
        raise error

    return again
