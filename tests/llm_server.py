"""A scripted model server over real HTTP, as strict as the strictest vendor in each dialect that it speaks.

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
from pathlib import Path
from typing import Self

import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.llm_anthropic import A, Messages
from tests.llm_chat import DONE, Chat, D, F, U
from tests.llm_connection import Connection, Dialect
from tests.llm_script import bench_step
from tests.llm_steps import Drop, Hang, Json, Raw, Reply, Request, Scripted, Status, Step, event

__all__ = ["DONE", "A", "D", "Drop", "F", "Hang", "LLMServer", "Raw", "Reply", "Request", "Status", "U", "event"]


@dataclass
class Rule:
    """Steps for the requests that `match` accepts."""

    match: Callable[[Request], bool]
    steps: Iterator[Scripted]


class LLMServer:
    """The server, in a thread of its own while it is entered.

    latency: seconds before the head of every answer; first_token, gap: as in Reply, for those that say nothing.
    requests: all calls of a model, in order. violations: why requests were refused, and calls that no script expected.
    connections: how many were made so far.
    """

    def __init__(
        self, *, port: int = 0, latency: float = 0, first_token: float = 0, gap: float = 0, bench: bool = False
    ) -> None:
        self.latency, self.first_token, self.gap, self.bench = latency, first_token, gap, bench
        self.requests: list[Request] = []
        self.connections = 0
        self.violations: list[str] = []
        self.pages: dict[str, object] = {"/v1/models": {"object": "list", "data": [{"id": "m", "object": "model"}]}}
        self._port, self._rules = port, list[Rule]()
        self.chat, self.messages = Chat(), Messages()
        self.dialects: Sequence[Dialect] = (self.chat, self.messages)
        self.keep_log = True

    def __enter__(self) -> Self:
        self._loop = fast_loop()()
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
        self.keep_log = True
        self.chat.wants = None
        self.messages.thoughts.forget()

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

    def dialect_of(self, request: Request) -> Dialect | None:
        """Return how the request is to be answered, None when it calls no model."""
        path = request.path if request.method == "POST" else ""
        return next((each for each in self.dialects if path.endswith(each.path)), None)

    def step_for(self, request: Request, dialect: Dialect | None) -> Step:
        """Choose the answer: refusal, page, pong, script, bench, in this order."""
        if dialect is None:
            page = self.pages.get(request.path.partition("?")[0])
            return Status(404, body={"error": "no such page"}) if page is None else Status(200, body=page)
        if self.keep_log:
            self.requests.append(request)
        if problem := dialect.violation(request):
            self.violations.append(problem)
            return dialect.refusal(problem)
        if request.ends_with_user and request.last_user_text.split("\n")[-1].strip() == "ping":
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
    asyncio.run(server.serve(), loop_factory=fast_loop())


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
