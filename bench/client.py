"""The load: speaks plain HTTP/1.1 over asyncio to Waymark's public API, and looks at events no longer than it must."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import orjson

from bench.batch import Batch, answer_orders, at_once
from bench.limit import ASKED
from bench.model import DIGITS, milliseconds_since

TURN_SECONDS = 120
STAMP = re.compile(rf"\d{{{DIGITS}}}")
LANES = 8


class Caller(asyncio.Protocol):
    """One connection that is kept: request, answer, request. Every answer has a content-length."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

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
        return orjson.loads(await asyncio.wait_for(self._answer, TURN_SECONDS))


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
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        transport.write(self._request.encode())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.open.done():
            self.open.set_exception(ConnectionError(self._buffer[:200].decode()))

    def data_received(self, data: bytes) -> None:
        *frames, self._buffer = (self._buffer + data).split(b"\n\n")
        for frame in frames:
            _, found, payload = frame.partition(b"\ndata: ")
            if found and b"\nevent: hello" not in frame:
                self._take(payload, b"\nevent: reset" in frame)

    def _take(self, payload: bytes, is_snapshot: bool) -> None:
        if not is_snapshot:
            self._heard(orjson.loads(payload))
        elif not self.open.done():
            self.open.set_result(None)


class Turn:
    """One turn of one goal, whose stream is open before it begins."""

    def __init__(self, api: "Api", goal: str, batch: Batch) -> None:
        self._api, self._goal, self._batch = api, goal, batch
        self._began = 0.0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_first = False

    async def open(self) -> None:
        self._viewer = Viewer(f"goals/{self._goal}/events", self._api.token, self._heard)
        await self._api.connect(lambda: self._viewer)
        await asyncio.wait_for(self._viewer.open, TURN_SECONDS)

    async def run(self) -> None:
        """Say something; return when the agent's answer has arrived."""
        self._began = time.perf_counter()
        async with self._api.caller() as caller:
            await caller.post(f"goals/{self._goal}/messages", self._api.token, {"content": ASKED})
        await asyncio.wait_for(self._over, TURN_SECONDS)

    def close(self) -> None:
        self._viewer.transport.abort()

    def _heard(self, event: dict[str, Any]) -> None:
        if not self._has_first:
            self._has_first = True
            self._batch.first_events.append((time.perf_counter() - self._began) * 1000)
        match event:
            case {"type": "think", "text": str(text)}:
                stamps = [int(found) for found in STAMP.findall(text)]
                self._batch.lags += [milliseconds_since(each) for each in stamps if each]
            case {"type": "message", "source": "agent", "message_type": "text"} if not self._over.done():
                self._over.set_result(None)
            case {"type": "error", "text": str(text)} if not self._over.done():
                self._over.set_exception(RuntimeError(text))


class Api:
    def __init__(self, address: str) -> None:
        where = urlsplit(address)
        self._host, self._port = where.hostname, where.port
        self._idle: list[Caller] = []
        self._goals: list[str] = []
        self.token = ""

    async def connect(self, make: Callable[[], asyncio.Protocol]) -> None:
        await asyncio.get_running_loop().create_connection(make, self._host, self._port)

    def caller(self) -> "_Borrowed":
        return _Borrowed(self, self._idle)

    async def login(self, email: str, password: str) -> None:
        async with self.caller() as caller:
            self.token = (await caller.post("auth/login", "", {"email": email, "password": password}))["token"]

    async def prepare(self, turns: int) -> None:
        """Make goals for so many turns."""
        batch = Batch()
        await at_once([self._new_goal] * turns, LANES, batch)
        if batch.errors:
            raise RuntimeError(batch.errors[0])

    async def batch(self, turns: int, lanes: int) -> Batch:
        """Run turns, each in a goal of its own, whose streams have been opened by `prepare` and `open`."""
        batch, self._opened.batch = self._opened.batch, Batch()
        await at_once([turn.run for turn in self._opened.turns], lanes, batch)
        for turn in self._opened.turns:
            turn.close()
        return batch

    async def open(self, turns: int) -> None:
        """Open the streams of the next turns and the connections that will be needed."""
        self._opened = _Opened([Turn(self, self._goals.pop(), batch := Batch()) for _ in range(0)], batch := Batch())
        self._opened.turns = [Turn(self, self._goals.pop(), batch) for _ in range(turns)]
        opening = Batch()
        await at_once([turn.open for turn in self._opened.turns], LANES, opening)
        if opening.errors:
            raise RuntimeError(opening.errors[0])

    async def _new_goal(self) -> None:
        async with self.caller() as caller:
            goal = await caller.post("goals", self.token, {"title": "Run a half marathon"})
        self._goals.append(goal["id"])
