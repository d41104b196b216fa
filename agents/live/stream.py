"""The way out: events from whoever works to whoever looks on.

`publish` puts the event in memory and, when nobody else is sending, writes it to a socket that never blocks; so it
costs a run next to nothing and cannot fail it. What takes time is left to one thread per process, the flusher: it
connects, joins pieces of text that follow each other closely, reads the answers, waits when Redis does not keep up.
What is durable was committed before, so an outage of Redis loses no truth: threads that may have missed an event get
a `reset` with all that has been said of the step on its way, and their viewers read the database again.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Final
from uuid import UUID

import hiredis
import orjson
import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from agents.live import wire
from agents.live.events import Event, Think
from agents.live.items import Disowned, Item, joined
from agents.live.keys import user_channel
from agents.live.line import Line
from agents.live.texts import Texts

logger = logging.getLogger(__name__)

WAITING_EVENTS: Final = 10_000
BATCH: Final = 500

PAUSE: Final = 0.001
"""Seconds. Text that follows text of its thread sooner waits for this long, and leaves with what comes meanwhile."""

NOBODY: Final = 0
"""No user's id."""

LOOKS: Final = 2
"""How often a thread that publishes sends what has come, others' events too, before it leaves them to the flusher."""

TICK: Final = 0.25
"""Seconds between two looks at the answers, when nothing else makes the flusher look."""


@cache
def redis_client() -> redis.Redis:
    """Return this process's client. Every wait has an end; nothing is retried behind the caller's back."""
    pool = redis.BlockingConnectionPool.from_url(
        settings.REDIS_URL,
        max_connections=20,
        timeout=5,
        socket_timeout=5,
        socket_connect_timeout=2,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 0),
    )
    return redis.Redis(connection_pool=pool)


def publish(thread_id: UUID, user_id: int, *events: Event) -> None:
    """Hand over events of a thread, which leave together. Call it after the commit of what they tell. Never raises,
    never waits."""
    _publisher().put(*(Item(thread_id, user_id, event) for event in events))


def disown(thread_id: UUID) -> None:
    """Another process goes on with the run of a thread: what this one has said of its step is of no more use."""
    _publisher().disown(thread_id)


def notify(user_id: int, kind: str) -> None:
    """Poke the open pages of a user, for what is no event of a thread (such as `signed_out`). May be lost."""
    try:
        redis_client().publish(user_channel(user_id), orjson.dumps({"type": kind}))
    except redis.RedisError:
        logger.warning("a note for user %s was lost", user_id)


def flush(timeout: float) -> bool:
    """Wait until everything published so far has been sent. Returns False when `timeout` (seconds) was not enough."""
    return _publisher().flush(timeout)


class Publisher:
    """The queue of a process and those who empty it. Whoever holds the lock sends; whoever does not get it need not:
    the holder looks at the queue again after letting go. Threads that may have missed an event are told so where the
    hole is: `_holes` before everything that waits, `_gaps`, for whom the queue was too long, behind it."""

    def __init__(self) -> None:
        self._queue: deque[Item] = deque()
        self._holes: dict[UUID, None] = {}
        self._gaps: dict[UUID, None] = {}
        self._texts = Texts()
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._sent: set[UUID] = set()
        self._sent_at = 0.0
        self._called = threading.Event()
        self._flusher: threading.Thread | None = None

    def put(self, *items: Item) -> None:
        for item in items:
            if len(self._queue) >= WAITING_EVENTS:
                self._gaps[item.thread_id] = None
            else:
                self._queue.append(item)
        if items and (self._flows(items[-1]) or not self._send_now()):
            self._call_flusher()

    def disown(self, thread_id: UUID) -> None:
        """In its turn: text that waits is of the same run."""
        self.put(Item(thread_id, NOBODY, Disowned()))

    def flush(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while self._flusher is not None and not self._is_done(until):
            if time.monotonic() > until:
                return False
            self._call_flusher()
            time.sleep(0.002)
        return True

    def _flows(self, item: Item) -> bool:
        """Whether this is text of a burst: it can wait for what comes after it."""
        if not isinstance(item.event, Think) or item.thread_id not in self._sent:
            return False
        return self._called.is_set() or time.monotonic() - self._sent_at < PAUSE

    def _send_now(self) -> bool:
        """Send what waits, as far as that needs no waiting. Returns False when the flusher has to go on."""
        for _ in range(LOOKS):
            if not (self._queue and self._lock.acquire(blocking=False)):
                return True
            try:
                line = self._line
                went = line is not None and not line.full and self._succeeds(self._send_some, line) and not line.full
            finally:
                self._lock.release()
            if not went:
                return False
        return not self._queue

    def _send_some(self, line: Line) -> None:
        if not self._queue:
            return
        batch = joined(self._taken(BATCH))
        self._sent, self._sent_at = {item.thread_id for item in batch}, time.monotonic()
        sent = [(item, before) for item in batch if (before := self._texts.take(item)) is not None]
        line.send([item.thread_id for item, _ in sent], [wire.packed(*item, before=before) for item, before in sent])

    def _taken(self, most: int) -> list[Item]:
        return [self._queue.popleft() for _ in range(min(len(self._queue), most))]

    def _call_flusher(self) -> None:
        if not self._called.is_set():
            self._called.set()
        if self._flusher is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._flusher is None:
                self._flusher = threading.Thread(target=self._run, name="live-flusher", daemon=True)
                self._flusher.start()

    def _run(self) -> None:
        while True:
            if self._called.wait(TICK):
                time.sleep(PAUSE)
            self._called.clear()
            with self._lock:
                if not self._succeeds(self._tend):
                    _await_redis()
            if self._queue or self._gaps or self._holes:
                self._called.set()

    def _tend(self) -> None:
        line = self._line = self._line or _new_line()
        line.wait() if line.full else line.receive()
        self._holes.update(dict.fromkeys(line.torn))
        line.torn.clear()
        self._tell(self._holes, line)
        self._send_some(line)
        if not self._queue:
            self._tear_gaps()
            self._tell(self._gaps, line)

    def _tell(self, missed: dict[UUID, None], line: Line) -> None:
        if missed:
            gaps = [missed.popitem()[0] for _ in range(len(missed))]
            line.send(gaps, map(self._texts.after_gap, gaps))

    def _tear_gaps(self) -> None:
        for thread_id in list(self._gaps):
            self._texts.tear(thread_id)

    def _succeeds[*Args](self, work: Callable[[*Args], None], *args: *Args) -> bool:
        try:
            work(*args)
        except (OSError, redis.RedisError, hiredis.HiredisError) as problem:
            self._drop_line()
            if self._holes:  # else nobody misses it: Redis may have been stopped together with this process
                logger.warning("live events wait for Redis: %s", problem)
        except Exception:
            self._drop_line()
            logger.exception("live events were dropped")
        else:
            return True
        return False

    def _drop_line(self) -> None:
        """Whatever has no answer may be lost, and what still waits would come to a Redis that may have forgotten what
        was before, texts too: a reset of their threads takes the place of all that."""
        for item in self._taken(len(self._queue)):
            self._texts.take(item)
            self._holes[item.thread_id] = None
        self._tear_gaps()
        self._holes.update(dict.fromkeys(self._gaps.popitem()[0] for _ in range(len(self._gaps))))
        self._holes.update(dict.fromkeys(self._texts.threads()))
        line, self._line = self._line, None
        if line is not None:
            self._holes.update(dict.fromkeys(line.unanswered))
            line.close()

    def _is_done(self, until: float) -> bool:
        if not self._lock.acquire(timeout=max(until - time.monotonic(), 0)):
            return False
        try:
            return not (self._queue or self._gaps or self._holes or (self._line and self._line.unanswered))
        finally:
            self._lock.release()


def _new_line() -> Line:
    client = redis_client()
    client.script_load(wire.SEND)
    return Line(client)


def _await_redis() -> None:
    pause = 0.1
    while True:
        time.sleep(pause)
        try:
            redis_client().ping()
        except redis.RedisError:
            pause = min(pause * 2, 2)
        else:
            return


@cache
def _publisher() -> Publisher:
    return Publisher()


def _forget() -> None:
    """A forked child has neither its parent's thread nor a right to its sockets and its events."""
    _publisher.cache_clear()
    redis_client.cache_clear()


os.register_at_fork(after_in_child=_forget)
