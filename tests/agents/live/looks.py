"""Ways to look at live events, for tests."""

from typing import Any
from uuid import UUID

import orjson

from agents.live import wire
from agents.live.events import Event, RunChanged, Think
from agents.live.hub import Arrival, Feed
from agents.live.keys import stream_key
from agents.live.line import Line
from agents.live.offload import offload
from agents.live.snapshot import place
from agents.live.stream import flush, publish, redis_client
from memory.ids import new_id

RUN = new_id()
USER = 1

PATIENCE = 30.0
"""Seconds after which something will not come any more. No measure of how soon it is to come: machines are slow."""


def token(number: int) -> str:
    return f"t{number:03d} "


def tokens(first: int, last: int) -> str:
    return "".join(token(number) for number in range(first, last + 1))


def say(thread: UUID, *texts: str, run: UUID = RUN, user: int = USER) -> None:
    """Send pieces of text, each as an event of its own: `publish` would join what comes in quick succession."""
    redis_client().script_load(wire.SEND)
    line = Line(redis_client())
    known = place(thread).partial
    before = len(known.text.encode()) if known and known.run == run else 0
    commands: list[bytes] = []
    for text in texts:
        commands.append(wire.packed(thread, user, Think(run=run, text=text), before))
        before += len(text.encode())
    line.send([thread] * len(texts), commands)
    line.wait()
    line.close()


def finish(thread: UUID, run: UUID = RUN, status: str = "succeeded", user: int = USER) -> None:
    tell(thread, RunChanged(run=run, status=status, iterations=1, cost=None), user)


def tell(thread: UUID, event: Event, user: int = USER) -> None:
    publish(thread, user, event)
    assert flush(5)


def payloads(thread: UUID) -> list[bytes]:
    """Return what the stream of a thread holds."""
    entries: Any = redis_client().xrange(stream_key(thread))
    return [fields[b"d"] for _, fields in entries]


async def off_loop(work: Any, *args: Any, **kwargs: Any) -> Any:
    """With the database connection given back: in a thread that stays idle it would outlive the test."""
    return await offload(work, *args, **kwargs)


async def read(feed: Feed, count: int, within: float = PATIENCE) -> list[Arrival]:
    """Return the next `count` arrivals, and what came with them; fails when they do not come in time."""
    arrived: list[Arrival] = []
    while len(arrived) < count:
        more = await feed.arrivals(within)
        assert more, f"only {len(arrived)} of {count} events came"
        arrived += more
    return arrived


async def nothing_more(feed: Feed) -> bool:
    return await feed.arrivals(0.05) == []


def text_of(arrivals: list[Arrival]) -> str:
    return "".join(event["text"] for event in map(parsed, arrivals) if event["type"] == "think")


def parsed(arrival: Arrival) -> dict[str, Any]:
    event: dict[str, Any] = orjson.loads(arrival.payload)
    return event
