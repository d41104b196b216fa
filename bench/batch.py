"""How the bench talks with those who drive the turns: a JSON line per order on their standard input, one per result."""

import asyncio
import json
import select
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import orjson

TICK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Order:
    turns: int
    at_once: int


@dataclass(slots=True)
class Batch:
    """What some turns took, as the driver saw it. Milliseconds, except for `seconds`, the whole batch.

    first_events: from the request to the first event of each turn. lags: from the model's write to its arrival, for
    each token of answers that carry the time of their writing.
    """

    seconds: float = 0
    walls: list[float] = field(default_factory=list)
    first_events: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    async def time(self, turn: Awaitable[None]) -> None:
        """Run one turn and keep what it took, or why it failed."""
        began = time.perf_counter()
        try:
            await turn
        except Exception as error:  # noqa: BLE001 (a failed turn is a result)
            self.errors.append(f"{type(error).__name__}: {error}")
        else:
            self.walls.append((time.perf_counter() - began) * 1000)


async def at_once(turns: list[Callable[[], Awaitable[None]]], lanes: int, batch: Batch) -> None:
    """Run the turns in order, `lanes` at any time."""
    waiting = iter(turns)

    async def lane() -> None:
        for turn in waiting:
            await batch.time(turn())

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(lanes)))
    batch.seconds = time.perf_counter() - began


async def answer_orders(greeting: str, handlers: dict[str, Callable[..., Awaitable[Any]]]) -> None:
    """The life of a driver: {name, arguments} in, what the handler of that name returns out, until the input ends."""
    print(greeting, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        result = await handlers[order["name"]](*order["arguments"])
        print(orjson.dumps(result).decode(), flush=True)


class Driver:
    """A process of the bench, seen from outside. Its last words go to the console."""

    def __init__(self, module: str, environment: dict[str, str], *arguments: str) -> None:
        self._module = module
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, bufsize=1
        )
        self.pid = self._process.pid
        self.first_line = self._read(lambda: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it by ending its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def ask(self, name: str, *arguments: object, meanwhile: Callable[[], None] = lambda: None) -> Any:
        """Give an order and return its result; `meanwhile` is called a few times a second until then."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"name": name, "arguments": arguments}) + "\n")
        return orjson.loads(self._read(meanwhile))

    def batch(self, order: Order, meanwhile: Callable[[], None]) -> Batch:
        return Batch(**self.ask("batch", *asdict(order).values(), meanwhile=meanwhile))

    def _read(self, meanwhile: Callable[[], None]) -> str:
        assert self._process.stdout is not None
        while not select.select([self._process.stdout], [], [], TICK_SECONDS)[0]:
            meanwhile()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._module} ended")
        return line.strip()
