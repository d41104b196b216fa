"""HTTP as the scripted model server speaks it, and the answers that it gives."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol, cast

import orjson

from tests.llm_steps import Drop, Hang, Json, Raw, Reply, Request, Status, Step


class Dialect(Protocol):
    """How requests at a path are judged and answered."""

    @property
    def path(self) -> str: ...
    @property
    def content_type(self) -> str: ...
    def violation(self, request: Request) -> str: ...
    def refusal(self, problem: str) -> Status: ...
    def begin(self, reply: Reply, request: Request) -> list[bytes]: ...
    def end(self, reply: Reply, request: Request) -> list[bytes]: ...
    def whole(self, reply: Reply, request: Request) -> Json: ...
    def sent(self, data: bytes) -> None: ...


class Host(Protocol):
    """What a connection asks of its server."""

    latency: float
    first_token: float
    gap: float
    connections: int

    def parsed(self, raw: bytes) -> Json: ...
    def dialect_of(self, request: Request) -> Dialect | None: ...
    def step_for(self, request: Request, dialect: Dialect | None) -> Step: ...


class Connection(asyncio.Protocol):
    """One client: requests come one after the other and are answered in order."""

    def __init__(self, server: Host) -> None:
        self._server = server
        self._buffer = bytearray()
        self._head: tuple[str, str, dict[str, str]] | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = _request_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
        length = int(self._head[2].get("content-length", 0))
        if len(self._buffer) < length:
            return
        raw = bytes(self._buffer[:length])
        del self._buffer[:length]
        request, self._head = Request(*self._head, raw, self._server.parsed(raw)), None
        self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        dialect = self._server.dialect_of(request)
        step = self._server.step_for(request, dialect)
        if self._server.latency:
            await asyncio.sleep(self._server.latency)
        if isinstance(step, Status) or dialect is None:
            assert isinstance(step, Status)
            self._whole(step)
        else:
            await self._tell(step, request, dialect)

    async def _tell(self, step: Step, request: Request, dialect: Dialect) -> None:
        match step:
            case Reply() if request.body.get("stream") and not step.is_whole:
                chunks = [*dialect.begin(step, request), *dialect.end(step, request)]
                dialect.sent(b"".join(chunks))
                await self._reply(step, chunks, head(dialect.content_type))
            case Reply():
                body = orjson.dumps(dialect.whole(step, request))
                dialect.sent(body)
                self._whole(Status(200, body=body))
            case Raw():
                writes = [*step.writes]
                dialect.sent(b"".join(writes))
                self._transport.write(head(step.content_type or dialect.content_type))
                await self._stream(writes, step.gap)
                self._transport.write(b"0\r\n\r\n")
            case Drop(after):
                await self._begin(_written(after, request, dialect), dialect)
                self._transport.close() if after else self._transport.abort()
            case Hang(seconds, after):
                await self._begin(_written(after, request, dialect), dialect)
                await asyncio.sleep(seconds)
                self._transport.abort()

    async def _reply(self, reply: Reply, chunks: Sequence[bytes], head: bytes) -> None:
        first = self._server.first_token if reply.first_token is None else reply.first_token
        gap = self._server.gap if reply.gap is None else reply.gap
        if not (first or gap or reply.hold):
            self._transport.write(head + b"".join(map(chunk, chunks)) + b"0\r\n\r\n")
            return
        self._transport.write(head)
        await asyncio.sleep(first)
        half = len(chunks) // 2
        await self._stream(chunks[:half], gap)
        if reply.hold:
            await asyncio.to_thread(reply.hold.wait, 60)
        await self._stream(chunks[half:], gap)
        self._transport.write(b"0\r\n\r\n")

    async def _begin(self, after: Sequence[bytes], dialect: Dialect) -> None:
        if after:
            self._transport.write(head(dialect.content_type))
            await self._stream(after, 0)

    async def _stream(self, writes: Sequence[bytes], gap: float) -> None:
        if not gap:
            self._transport.write(b"".join(map(chunk, writes)))
            return
        for write in writes:
            self._transport.write(chunk(write))
            await asyncio.sleep(gap)

    def _whole(self, status: Status) -> None:
        body = status.body if isinstance(status.body, bytes) else orjson.dumps(status.body)
        headers = {"content-type": "application/json", **status.headers, "content-length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reason = next((known.phrase for known in HTTPStatus if known == status.code), "Custom")
        self._transport.write(f"HTTP/1.1 {status.code} {reason}\r\n{lines}\r\n".encode() + body)


def _request_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    return method, path, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def head(content_type: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _written(after: Sequence[bytes] | Reply, request: Request, dialect: Dialect) -> Sequence[bytes]:
    return dialect.begin(after, request) if isinstance(after, Reply) else after
