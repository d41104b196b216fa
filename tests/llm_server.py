"""A scripted model server over real HTTP, OpenAI-style, as strict as the strictest vendor.

In tests:     with LLMServer() as server: server.script([Reply("hello")]); ... server.url ... server.requests
By itself:    python tests/llm_server.py --port 9100 --latency-ms 0 --first-token-ms 1000 --gap-ms 20

With `bench`, as when it runs by itself, it is stateless: two tool calls and then an answer of 60 tokens, told apart by
the number of tool results since the last user message, so that any number of conversations may run at once.
"""

import argparse
import asyncio
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Self, cast

import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.llm_script import (
    DONE,
    D,
    Drop,
    F,
    Hang,
    Json,
    Raw,
    Reply,
    Request,
    Scripted,
    Status,
    Step,
    U,
    bench_step,
    event,
    violation,
)

__all__ = ["DONE", "D", "Drop", "F", "Hang", "LLMServer", "Raw", "Reply", "Request", "Status", "U", "event"]


@dataclass
class Rule:
    """Steps for the requests that `match` accepts."""

    match: Callable[[Request], bool]
    steps: Iterator[Scripted]


class LLMServer:
    """The server, in a thread of its own while it is entered.

    latency: seconds before the head of every answer; first_token, gap: as in Reply, for those that say nothing.
    requests: all calls of a model, in order. violations: why requests were refused, and calls that no script expected.
    """

    def __init__(
        self, *, port: int = 0, latency: float = 0, first_token: float = 0, gap: float = 0, bench: bool = False
    ) -> None:
        self.latency, self.first_token, self.gap, self.bench = latency, first_token, gap, bench
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self.pages: dict[str, object] = {"/v1/models": {"object": "list", "data": [{"id": "m", "object": "model"}]}}
        self._port, self._rules = port, list[Rule]()
        self.keep_log = True

    def __enter__(self) -> Self:
        self._loop = _fast_loop()()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm-server", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"{self.address}/v1"

    def script(self, steps: Iterable[Scripted], match: str | Callable[[Request], bool] = "") -> None:
        """Queue `steps` for the requests that match: a function, or a text that is the key or the model or stands in
        the first user text. Rules are tried in the order in which they were added; the empty text matches all."""
        self._rules.append(Rule(_matcher(match), iter(list(steps))))

    def always(self, step: Scripted, match: str | Callable[[Request], bool] = "") -> None:
        """Answer every request that matches, and that no earlier rule answers, by `step`."""
        self._rules.append(Rule(_matcher(match), itertools.repeat(step)))

    def reset(self) -> None:
        self._rules.clear()
        self.requests.clear()
        self.violations.clear()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), "127.0.0.1", self._port, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Serve in the running loop for ever."""
        await self.start()
        await asyncio.Event().wait()

    async def _stop(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def parsed(self, raw: bytes) -> Json:
        """Return the body of a request, an empty one when it is no JSON object."""
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return {}
        return body if isinstance(body, dict) else {}

    def step_for(self, request: Request) -> Step:
        """Choose the answer: refusal, page, pong, script, bench, in this order."""
        if request.method == "GET" or not request.path.endswith("/chat/completions"):
            page = self.pages.get(request.path)
            return Status(404, body={"error": "no such page"}) if page is None else Status(200, body=page)
        if self.keep_log:
            self.requests.append(request)
        if problem := violation(request):
            self.violations.append(problem)
            return Status(400, body={"error": {"message": problem, "type": "invalid_request_error"}})
        if request.messages[-1].get("role") == "user" and request.last_user_text.split("\n")[-1].strip() == "ping":
            return Reply("pong")
        step = self._scripted(request)
        return step(request) if callable(step) else step

    def _scripted(self, request: Request) -> Scripted:
        for rule in self._rules:
            if rule.match(request) and (step := next(rule.steps, None)) is not None:
                return step
        if self.bench:
            return bench_step(request)
        self.violations.append("a call that no script expected")
        return Status(400, body={"error": {"message": "no script expects this call"}})


def _matcher(match: str | Callable[[Request], bool]) -> Callable[[Request], bool]:
    if callable(match):
        return match
    return lambda request: match in (request.key, request.body.get("model")) or match in request.first_user_text


class Connection(asyncio.Protocol):
    """One client: requests come one after the other and are answered in order."""

    def __init__(self, server: LLMServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._head: tuple[str, str, dict[str, str]] | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

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
        step = self._server.step_for(request)
        if self._server.latency:
            await asyncio.sleep(self._server.latency)
        match step:
            case Reply() if request.body.get("stream"):
                await self._reply(step, step.chunks(request))
            case Reply():
                self._whole(Status(200, body=_completion(step)))
            case Raw():
                self._transport.write(_head(step.content_type))
                await self._stream([*step.writes], step.gap)
                self._transport.write(b"0\r\n\r\n")
            case Status():
                self._whole(step)
            case Drop(after):
                await self._begin(after)
                self._transport.close() if after else self._transport.abort()
            case Hang(seconds, after):
                await self._begin(after)
                await asyncio.sleep(seconds)
                self._transport.abort()

    async def _reply(self, reply: Reply, chunks: Sequence[bytes]) -> None:
        first = self._server.first_token if reply.first_token is None else reply.first_token
        gap = self._server.gap if reply.gap is None else reply.gap
        if not (first or gap or reply.hold):
            self._transport.write(_head() + b"".join(map(_chunk, chunks)) + b"0\r\n\r\n")
            return
        self._transport.write(_head())
        await asyncio.sleep(first)
        half = len(chunks) // 2
        await self._stream(chunks[:half], gap)
        if reply.hold:
            await asyncio.to_thread(reply.hold.wait, 60)
        await self._stream(chunks[half:], gap)
        self._transport.write(b"0\r\n\r\n")

    async def _begin(self, after: Sequence[bytes]) -> None:
        if after:
            self._transport.write(_head())
            await self._stream(after, 0)

    async def _stream(self, writes: Sequence[bytes], gap: float) -> None:
        if not gap:
            self._transport.write(b"".join(map(_chunk, writes)))
            return
        for write in writes:
            self._transport.write(_chunk(write))
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


def _head(content_type: str = "text/event-stream") -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _completion(reply: Reply) -> dict[str, object]:
    prompt, completion = (reply.usage or (1, 1))[:2]
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish or "stop"}
    return {"id": "c1", "choices": [choice], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def main() -> None:
    """Serve the benchmark until interrupted."""
    parser = argparse.ArgumentParser(description="A scripted model server: two tool calls, then 60 tokens.")
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--latency-ms", type=float, default=0, help="before every answer")
    parser.add_argument("--first-token-ms", type=float, default=0, help="between the head and the first token")
    parser.add_argument("--gap-ms", type=float, default=0, help="between tokens")
    options = parser.parse_args()
    server = LLMServer(
        port=options.port,
        latency=options.latency_ms / 1000,
        first_token=options.first_token_ms / 1000,
        gap=options.gap_ms / 1000,
        bench=True,
    )
    server.keep_log = False
    print(server.address, flush=True)
    asyncio.run(server.serve(), loop_factory=_fast_loop())


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
