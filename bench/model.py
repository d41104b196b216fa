"""The model of the bench: the tests' scripted server in a process of its own, which can be told to be slower, and which
then writes into each token when it was sent."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from bench.batch import answer_orders
from tests.llm_connection import Connection, chunk
from tests.llm_script import Json, Reply, Request, Scripted
from tests.llm_server import LLMServer, fast_loop

DIGITS: Final = 10
BLANK = b"0" * DIGITS
STAMP = re.compile(rf"\d{{{DIGITS}}}")
LATEST: Final = 10_000_000_000
LONG: Final = 200_000  # bytes
TEXT = " ".join([BLANK.decode()] * 60)


def stamp() -> int:
    """Microseconds by the clock that all processes of this machine share, cut to the digits that a token has."""
    return time.monotonic_ns() // 1000 % LATEST


def milliseconds_since(stamped: int) -> float:
    return (stamp() - stamped) % LATEST / 1000


def stamps(text: str) -> list[int]:
    """Return the times that stand in a piece of an answer."""
    return [int(found) for found in STAMP.findall(text) if int(found)]


class Stamping(Connection):
    async def _stream(self, writes: Sequence[bytes], gap: float) -> None:
        for write in writes:
            self._transport.write(chunk(write.replace(BLANK, b"%0*d" % (DIGITS, stamp()))))
            if gap:
                await asyncio.sleep(gap)


class BenchServer(LLMServer):
    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Stamping(self), "127.0.0.1", 0, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    def parsed(self, raw: bytes) -> Json:
        return _skimmed(raw) if len(raw) > LONG else super().parsed(raw)

    def _scripted(self, request: Request) -> Scripted:
        step = super()._scripted(request)
        return replace(step, text=TEXT) if self.gap and isinstance(step, Reply) and step.text else step


def _skimmed(raw: bytes) -> Json:
    """Return a request without what stands before the last words of its user: to read a long history wholly takes as
    long as everything that is measured, on the same cores and out of their caches."""
    messages = b',"messages":['
    body: Json = orjson.loads(raw[: raw.index(messages)] + messages + raw[raw.rindex(b'{"role":"user"') :])
    return body


async def serve() -> None:
    server = BenchServer(bench=True)
    server.keep_log = False
    await server.start()

    async def set_pace(first_token: float, gap: float) -> list[str]:
        """Return the requests that were refused since the last time: there must be none."""
        server.first_token, server.gap = first_token, gap
        refused, server.violations = server.violations, []
        return refused

    await answer_orders(server.url, {"pace": set_pace})


if __name__ == "__main__":
    asyncio.run(serve(), loop_factory=fast_loop())
