"""One request and its answer, over a socket that is open (see `wire`).

The standard library reads the answer, and its body is passed on as it arrives.
"""

import contextlib
import io
import re
import socket
import time
from collections.abc import Buffer, Callable, Iterator
from http.client import HTTPException, HTTPResponse

import httpx2

READ_BYTES = BLOCK_BYTES = 65_536
# No honest answer to one call is longer, nor the heads before it; a server that sends without end must neither fill the
# memory nor hold the run. Bytes, seconds.
LONGEST_HEAD = 262_144
LONGEST_ANSWER = 32_000_000
LONGEST_SECONDS = 3_600.0
UNSENDABLE = re.compile(rb"[\r\n\0]")


@contextlib.contextmanager
def mapped(timeout: type[httpx2.TransportError], other: type[httpx2.TransportError]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise timeout(str(error)) from error
    except HTTPException as error:  # First, because a server that hangs up without an answer is an OSError as well.
        raise httpx2.RemoteProtocolError(str(error)) from error
    except OSError as error:
        raise other(str(error)) from error


class _Intake(socket.SocketIO):
    """What comes over the socket for one answer, bounded: http.client takes any number of informational heads, and any
    number of lines after the last chunk."""

    def __init__(self, held: socket.socket) -> None:
        super().__init__(held, "r")
        self.left = LONGEST_HEAD
        self._until = time.monotonic() + LONGEST_SECONDS

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, READ_BYTES)

    def readinto(self, buffer: Buffer) -> int | None:
        if time.monotonic() > self._until:
            raise TimeoutError("the answer takes too long")
        read = super().readinto(buffer)
        self.left -= read or 0
        if self.left < 0:
            raise HTTPException("the answer is too long")
        return read


class _Answer(HTTPResponse):
    """Passes over every informational head, where http.client only knows 100."""

    def __init__(self, held: socket.socket, method: str) -> None:
        self._intake = _Intake(held)
        super().__init__(self._intake, method=method)  # type: ignore[arg-type]  # It only asks for a file.

    def begin(self) -> None:
        super().begin()
        while self.status < 200:
            self.headers = None  # type: ignore[assignment]
            super().begin()
        self._intake.left = LONGEST_ANSWER


class Exchange(httpx2.SyncByteStream):
    """One request and its answer, whose body it is."""

    def __init__(self, held: socket.socket, method: str, keep: Callable[[socket.socket], None]) -> None:
        self._held = held
        self._keep = keep
        self._answer = _Answer(held, method=method)
        self._is_whole = self._is_closed = False

    def start(self, request: httpx2.Request, seconds: dict[str, float | None]) -> httpx2.Response:
        self._held.settimeout(seconds["write"])
        # A server may refuse before it has read everything, and close: its answer says more than the failed write.
        with contextlib.suppress(httpx2.WriteError), mapped(httpx2.WriteTimeout, httpx2.WriteError):
            for block in _blocks(request):
                self._held.sendall(block)
        self._held.settimeout(seconds["read"])
        with mapped(httpx2.ReadTimeout, httpx2.ReadError):
            self._answer.begin()
        if self._answer.getheader("content-encoding", "identity").lower() != "identity":
            raise httpx2.DecodingError("it compressed its answer, which it was asked not to do")
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._answer.getheaders()]
        return httpx2.Response(self._answer.status, headers=headers, stream=self)

    def __iter__(self) -> Iterator[bytes]:
        with mapped(httpx2.ReadTimeout, httpx2.ReadError):
            while read := self._answer.read1(READ_BYTES):
                yield read
            if self._answer.length:
                raise HTTPException(f"{self._answer.length} bytes of the answer are missing")
        self._is_whole = not self._answer.will_close

    def close(self) -> None:
        """Let go of the socket, once."""
        self._answer.close()
        if not self._is_closed:
            self._is_closed = True
            self._keep(self._held) if self._is_whole else self._held.close()


def _blocks(request: httpx2.Request) -> Iterator[bytearray]:
    """What is to be sent, little by little: a long conversation is never joined to one more copy of itself."""
    if any(UNSENDABLE.search(value) for _, value in request.headers.raw):
        raise httpx2.LocalProtocolError("a header has a character that would end it")
    block = bytearray(b"%b %b HTTP/1.1\r\n" % (request.method.encode(), request.url.raw_path))
    block += b"".join(b"%b: %b\r\n" % header for header in request.headers.raw) + b"\r\n"
    assert isinstance(request.stream, httpx2.SyncByteStream)
    for piece in request.stream:
        block += piece
        if len(block) >= BLOCK_BYTES:
            yield block
            block = bytearray()
    if block:
        yield block
