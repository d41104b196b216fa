"""As much of HTTP/1.1 as the bench needs, at little cost: it shares the machine with what it measures."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import orjson

PATIENCE_SECONDS = 60
REFUSED = (b"HTTP/1.1 4", b"HTTP/1.1 5")


class Caller(asyncio.Protocol):
    """One connection that is kept: request, answer, request. Every answer has a content-length."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if found and length and len(body) >= int(length[1]) and not self._answer.done():
            self._buffer = b""
            if head[9:10] == b"2":
                self._answer.set_result(body)
            else:
                self._answer.set_exception(RuntimeError(f"{head[9:12].decode()}: {body[:200].decode()}"))

    async def post(self, path: str, token: str, body: object) -> Any:
        self._answer = asyncio.get_running_loop().create_future()
        raw = orjson.dumps(body)
        authorization = f"authorization: Bearer {token}\r\n" if token else ""
        head = f"POST /api/v1/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{authorization}content-type: application/json\r\n"
        self.transport.write(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
        return orjson.loads(await asyncio.wait_for(self._answer, PATIENCE_SECONDS))


class Viewer(asyncio.Protocol):
    """One event stream. Each frame comes as a chunk of its own, so the marks of chunks never fall inside one."""

    def __init__(self, path: str, token: str, heard: Callable[[dict[str, Any]], None]) -> None:
        self._request = (
            f"GET /api/v1/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
            "accept: text/event-stream\r\n\r\n"
        )
        self._heard = heard
        self._buffer = b""
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._request.encode())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.open.done():
            self.open.set_exception(ConnectionError(self._buffer[:200].decode()))

    def data_received(self, data: bytes) -> None:
        *frames, self._buffer = (self._buffer + data).split(b"\n\n")
        if not self.open.done() and self._buffer.startswith(REFUSED):
            self.open.set_exception(RuntimeError(self._buffer[:400].decode()))
        for frame in frames:
            _, found, payload = frame.partition(b"\ndata: ")
            if found and b"\nevent: hello" not in frame:
                self._take(payload, b"\nevent: reset" in frame)

    def _take(self, payload: bytes, is_snapshot: bool) -> None:
        if not is_snapshot:
            self._heard(orjson.loads(payload))
        elif not self.open.done():
            self.open.set_result(None)
