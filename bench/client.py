"""The load: a process that turns to Waymark's public API and to nothing else."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

from bench.batch import Batch, answer_orders, at_once
from bench.model import milliseconds_since, stamps
from bench.wire import PATIENCE_SECONDS, Caller, Viewer

ASKED = "Create a note about what I need for a half marathon in May"
LANES = 8  # for what is not measured


class Turn:
    """One turn of one goal, whose stream is open before it begins."""

    def __init__(self, api: "Api", goal: str, batch: Batch) -> None:
        self._api, self._goal, self._batch = api, goal, batch
        self._began = 0.0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_first = False

    async def open(self) -> None:
        self._viewer = Viewer(f"goals/{self._goal}/events", self._api.token, self._heard)
        await self._api.connect(self._viewer)
        await asyncio.wait_for(self._viewer.open, PATIENCE_SECONDS)

    async def run(self) -> None:
        """Say something; return when the agent's answer has arrived."""
        self._began = time.perf_counter()
        async with self._api.caller() as caller:
            await caller.post(f"goals/{self._goal}/messages", self._api.token, {"content": ASKED})
        await asyncio.wait_for(self._over, PATIENCE_SECONDS)

    def close(self) -> None:
        self._viewer.transport.abort()

    def _heard(self, event: dict[str, Any]) -> None:
        if not self._has_first:
            self._has_first = True
            self._batch.first_events.append((time.perf_counter() - self._began) * 1000)
        match event:
            case {"type": "think", "text": str(text)}:
                self._batch.lags += map(milliseconds_since, stamps(text))
            case {"type": "message", "source": "agent", "message_type": "text"} if not self._over.done():
                self._over.set_result(None)
            case {"type": "error", "text": str(text)} if not self._over.done():
                self._over.set_exception(RuntimeError(text))


class Api:
    """One user's device."""

    def __init__(self, address: str) -> None:
        where = urlsplit(address)
        assert where.hostname
        assert where.port
        self._place = where.hostname, where.port
        self._idle: list[Caller] = []
        self._turns: list[Turn] = []
        self._batch = Batch()
        self.token = ""

    async def connect(self, protocol: asyncio.Protocol) -> None:
        await asyncio.get_running_loop().create_connection(lambda: protocol, *self._place)

    @contextlib.asynccontextmanager
    async def caller(self) -> AsyncIterator[Caller]:
        """Lend a connection, which is kept for the next unless the server has closed it meanwhile."""
        self._idle = [caller for caller in self._idle if not caller.transport.is_closing()]
        if self._idle:
            caller = self._idle.pop()
        else:
            caller = Caller()
            await self.connect(caller)
        yield caller
        self._idle.append(caller)

    async def sign_in(self, email: str, password: str) -> None:
        async with self.caller() as caller:
            answer = await caller.post("auth/login", "", {"email": email, "password": password})
        self.token = answer["token"]

    async def set_budget(self, tokens: int) -> None:
        """Reserve and settle every call from now on; so many tokens a month may be used."""
        async with self.caller() as caller:
            await caller.post("budgets", self.token, {"window": "month", "tokens": tokens})

    async def make_goals(self, count: int) -> list[str]:
        """Return the ids of new goals."""
        made: list[str] = []
        await _unmeasured([lambda: self._new_goal(made)] * count)
        return made

    async def open(self, goals: list[str]) -> None:
        """Open the streams of the next turns, one in each of the goals."""
        self._batch = Batch()
        self._turns = [Turn(self, goal, self._batch) for goal in goals]
        await _unmeasured([turn.open for turn in self._turns])

    async def batch(self, turns: int, lanes: int) -> Batch:
        """Run the turns that have been opened."""
        assert len(self._turns) == turns
        await at_once([turn.run for turn in self._turns], lanes, self._batch)
        for turn in self._turns:
            turn.close()
        return self._batch

    async def _new_goal(self, made: list[str]) -> None:
        async with self.caller() as caller:
            goal = await caller.post("goals", self.token, {"title": "Run a half marathon"})
        made.append(goal["id"])


async def _unmeasured(work: list[Callable[[], Any]]) -> None:
    batch = Batch()
    await at_once(work, LANES, batch)
    if batch.errors:
        raise RuntimeError(batch.errors[0])


async def main() -> None:
    api = Api(os.environ["WAYMARK_ADDRESS"])
    orders = (api.sign_in, api.set_budget, api.make_goals, api.open, api.batch)
    await answer_orders("ready", {order.__name__: order for order in orders})


if __name__ == "__main__":
    import uvloop

    asyncio.run(main(), loop_factory=uvloop.new_event_loop)
