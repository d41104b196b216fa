"""The way in: one reader per web process, and a bounded feed for each viewer.

A viewer who attaches is subscribed first; live events are held back while the stream is read from the cursor on; then
both are merged by id. So there is no gap and no duplicate. When the cursor is not in the stream (trimmed away, from
the future, missing), the feed starts with a reset instead, and the viewer takes a snapshot. The same is done for
every viewer after a lost connection. A viewer who is too slow is closed and comes back with its cursor.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from agents.live.keys import NOWHERE, RESET, order, stream_key, thread_channel, user_channel
from agents.live.subscription import Subscription

logger = logging.getLogger(__name__)

WAITING: Final = 500

PORTION: Final = 100
RESUMED_BYTES: Final = 1_000_000
"""Of the events that a viewer who comes back is told one by one, read PORTION at a time."""

WIRE: Final = b'{"type":"wire"}'
"""A note to every user who looks on: the connection to Redis is lost, or is back."""


class Arrival(NamedTuple):
    """One event: its id (empty for a reset that is not in the stream) and its JSON, as it was published."""

    id: str
    payload: bytes

    @property
    def is_reset(self) -> bool:
        return self.payload == RESET


class Closed(Exception):
    """The viewer was too slow. It may come back with the id of the last event it has handled."""


class Feed:
    """What one viewer is still to be told. `resumed` is false when it starts (or last started) with a reset."""

    def __init__(self, channel: bytes, thread_id: UUID | None, cursor: str) -> None:
        self.channel = channel
        self.thread_id = thread_id
        self.cursor = cursor
        self.resumed = False
        self.ready = asyncio.Event()
        self._queue: deque[Arrival] = deque()
        self._limit = WAITING
        self._reset_waits = False
        self._held: list[Arrival] | None = None
        self._is_closed = False
        self._reader: asyncio.Future[None] | None = None

    async def arrivals(self, within: float | None = None) -> list[Arrival]:
        """Return what has arrived, as soon as there is anything; nothing after `within` seconds. Only one may wait.

        Raises:
            Closed: see there.
        """
        if not self._queue and not self._is_closed:
            await self._wait(within)
        if self._is_closed:
            raise Closed
        return self.waiting()

    def waiting(self) -> list[Arrival]:
        """Return what has arrived already, without waiting."""
        self._reset_waits = False
        arrived = list(self._queue)
        self._queue.clear()
        return arrived

    def skip_to(self, cursor: str) -> None:
        """Forget everything up to `cursor`: a snapshot holds it."""
        rest = [each for each in self.waiting() if each.is_reset or order(each.id) > order(cursor)]
        self.cursor = cursor
        for each in rest:
            self._enqueue(each)

    def put(self, arrival: Arrival) -> None:
        if self._held is not None:
            self._held.append(arrival)
            if len(self._held) > WAITING:
                self._close()
        elif not arrival.id or order(arrival.id) > order(self.cursor):
            self._enqueue(arrival)

    def hold(self) -> list[Arrival]:
        """Keep live events back until `release` is called with what this returns. A later hold overrules it."""
        self._held = []
        return self._held

    def release(self, held: list[Arrival], missed: list[Arrival] | None) -> None:
        """Hand over the events after the cursor (None: a reset, they are unknown), then what was held back."""
        if self._held is not held:
            return
        self._held = None
        self._limit = WAITING + len(missed or [])
        self.resumed = missed is not None
        if missed is None:
            self.cursor = ""
            if not self._reset_waits:  # one snapshot, taken when it is read, makes up for both
                self._enqueue(Arrival("", RESET))
        for arrival in [*(missed or []), *held]:
            self.put(arrival)
        self.ready.set()

    def _enqueue(self, arrival: Arrival) -> None:
        if arrival.id:
            self.cursor = arrival.id
        self._reset_waits = self._reset_waits or arrival.is_reset
        self._queue.append(arrival)
        if len(self._queue) > self._limit:
            self._close()
        self._wake()

    def _close(self) -> None:
        self._is_closed = True
        self._queue.clear()
        self._wake()

    async def _wait(self, within: float | None) -> None:
        """Cheaper than `asyncio.timeout`, which works by cancelling: this is done for every event of every viewer."""
        loop = asyncio.get_running_loop()
        self._reader = loop.create_future()
        alarm = None if within is None else loop.call_later(within, self._wake)
        try:
            await self._reader
        finally:
            self._reader = None
            if alarm is not None:
                alarm.cancel()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class Hub:
    """The feeds of this process. Made by `hub()`."""

    def __init__(self, url: str) -> None:
        self._feeds: dict[bytes, set[Feed]] = {}
        self._subscription = Subscription(url, self._deliver, self._heal, self._tell_wire)
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            url,
            max_connections=20,
            timeout=5,
            socket_timeout=5,
            socket_connect_timeout=2,
            retry=Retry(NoBackoff(), 0),
        )
        self._client = redis.asyncio.Redis.from_pool(pool)
        self._healing: set[asyncio.Task[None]] = set()
        self._reader = asyncio.create_task(self._subscription.run(), name="live-hub")

    @contextlib.asynccontextmanager
    async def attach(self, thread_id: UUID, after: str) -> AsyncIterator[Feed]:
        """Follow a thread from the event after `after`. Whoever calls must have checked that the viewer may see it."""
        feed = Feed(thread_channel(thread_id).encode(), thread_id, after)
        async with self._joined(feed):
            yield feed

    @contextlib.asynccontextmanager
    async def listen(self, user_id: int) -> AsyncIterator[Feed]:
        """Follow the notes to a user. They are not kept: what was sent before is not told."""
        feed = Feed(user_channel(user_id).encode(), None, "")
        async with self._joined(feed):
            if not self.is_up:
                feed.put(Arrival("", WIRE))
            yield feed

    @property
    def is_up(self) -> bool:
        """Whether events come in. Without them viewers have to ask."""
        return self._subscription.is_up

    async def close(self) -> None:
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        await self._client.aclose()

    @contextlib.asynccontextmanager
    async def _joined(self, feed: Feed) -> AsyncIterator[None]:
        self._feeds.setdefault(feed.channel, set()).add(feed)
        held = feed.hold()
        try:
            await self._subscription.subscribe(feed.channel)
            await self._resume(feed, held)
            await feed.ready.wait()
            yield
        finally:
            others = self._feeds[feed.channel]
            others.discard(feed)
            if not others:
                del self._feeds[feed.channel]
                self._subscription.unsubscribe(feed.channel)

    async def _resume(self, feed: Feed, held: list[Arrival]) -> None:
        if feed.thread_id is None:
            feed.release(held, [])
            return
        try:
            missed = await self._after(feed.thread_id, feed.cursor)
        except redis.RedisError as problem:
            logger.warning("live events: the stream of %s could not be read: %s", feed.thread_id, problem)
            missed = None
        feed.release(held, missed)

    async def _after(self, thread_id: UUID, cursor: str) -> list[Arrival] | None:
        """Return the events after `cursor`, or None when the stream does not reach back to it, or there are so many
        bytes of them that a snapshot costs less. They are read little by little, for they are held by each viewer."""
        if order(cursor) == NOWHERE:
            return None
        missed: list[Arrival] = []
        read, size = await self._read(thread_id, cursor, 1), 0
        if not read or order(read[0].id) != order(cursor):
            return None
        while read:
            read = await self._read(thread_id, f"({read[-1].id}", PORTION)
            missed += read
            size += sum(len(each.payload) for each in read)
            if size > RESUMED_BYTES:
                return None
        return missed

    async def _read(self, thread_id: UUID, start: str, most: int) -> list[Arrival]:
        entries: Any = await self._client.xrange(stream_key(thread_id), start, "+", count=most)
        return [Arrival(event_id.decode(), fields[b"d"]) for event_id, fields in entries]

    def _deliver(self, channel: bytes, data: bytes) -> None:
        feeds = self._feeds.get(channel, ())
        arrival = None
        for feed in feeds:
            if arrival is None:
                arrival = _arrival(data) if feed.thread_id else Arrival("", data)
            feed.put(arrival)

    def _heal(self) -> None:
        """After each connection: what was published meanwhile, for everyone who is attached."""
        for feed in [feed for feeds in self._feeds.values() for feed in feeds]:
            task = asyncio.create_task(self._resume(feed, feed.hold()))
            self._healing.add(task)
            task.add_done_callback(self._healing.discard)
        self._tell_wire()

    def _tell_wire(self) -> None:
        for feed in [feed for feeds in self._feeds.values() for feed in feeds if feed.thread_id is None]:
            feed.put(Arrival("", WIRE))


def _arrival(data: bytes) -> Arrival:
    event_id, _, payload = data.partition(b" ")
    return Arrival(event_id.decode(), payload)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running event loop, started on first use."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub(settings.REDIS_URL)
    return found
