"""The way out: events from whoever works to whoever looks on.

`publish` only puts the event in memory, so it costs a run nothing and cannot fail it. One thread per process sends:
at once when it is idle; while a send is on its way, pieces of text that follow each other are joined. What is durable
was committed before, so an outage of Redis loses no truth: threads that may have missed an event get a `reset`, and
their viewers read the database again.
"""

import logging
import os
import threading
import time
from collections import deque
from functools import cache
from typing import Final, NamedTuple
from uuid import UUID

import orjson
import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from agents.live import wire
from agents.live.events import Event, Think
from agents.live.keys import user_channel

logger = logging.getLogger(__name__)

WAITING_EVENTS: Final = 10_000
BATCH: Final = 500


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


def publish(thread_id: UUID, user_id: int, event: Event) -> None:
    """Hand an event over for sending. Call it after the commit of what it tells. Never raises, never waits."""
    _publisher().put(Item(thread_id, user_id, event))


def notify(user_id: int, kind: str) -> None:
    """Poke the open pages of a user, for what is no event of a thread (such as `signed_out`). May be lost."""
    try:
        redis_client().publish(user_channel(user_id), orjson.dumps({"type": kind}))
    except redis.RedisError:
        logger.warning("a note for user %s was lost", user_id)


def flush(timeout: float) -> bool:
    """Wait until everything published so far has been sent. Returns False when `timeout` (seconds) was not enough."""
    return _publisher().flush(timeout)


class Item(NamedTuple):
    thread_id: UUID
    user_id: int
    event: Event


class Publisher:
    """The queue of a process and the thread that empties it."""

    def __init__(self) -> None:
        self._queue: deque[Item] = deque()
        self._gaps: dict[UUID, None] = {}
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, item: Item) -> None:
        if len(self._queue) >= WAITING_EVENTS:
            self._gaps[item.thread_id] = None
        else:
            self._queue.append(item)
        self._idle.clear()
        self._wake.set()
        if self._thread is None:
            self._start()

    def flush(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        while self._thread is not None and (self._queue or self._gaps or not self._idle.is_set()):
            if time.monotonic() > until:
                return False
            time.sleep(0.002)
        return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live-flusher", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._queue or self._gaps:
                self._idle.clear()
                self._send_some()
            self._idle.set()

    def _send_some(self) -> None:
        batch = joined([self._queue.popleft() for _ in range(min(len(self._queue), BATCH))])
        gaps = [] if batch else list(self._gaps)
        try:
            wire.send(redis_client(), [wire.command(*item) for item in batch] + [wire.gap(each) for each in gaps])
        except redis.RedisError as problem:
            logger.warning("live events wait for Redis: %s", problem)
            self._lost(batch)
            self._await_redis()
        except Exception:
            logger.exception("live events were dropped")
            self._lost(batch)
            time.sleep(1)
        else:
            for thread_id in gaps:
                self._gaps.pop(thread_id, None)

    def _lost(self, batch: list[Item]) -> None:
        self._gaps.update(dict.fromkeys(item.thread_id for item in batch))

    def _await_redis(self) -> None:
        pause = 0.1
        while True:
            time.sleep(pause)
            try:
                redis_client().ping()
            except redis.RedisError:
                pause = min(pause * 2, 2)
            else:
                return


def joined(items: list[Item]) -> list[Item]:
    """Join each piece of text with the one before it in its thread, when both belong to the same run."""
    result: list[Item] = []
    last: dict[UUID, int] = {}
    for item in items:
        place = last.get(item.thread_id)
        both = None if place is None else _joined(result[place].event, item.event)
        if place is not None and both is not None:
            result[place] = item._replace(event=both)
        else:
            last[item.thread_id] = len(result)
            result.append(item)
    return result


def _joined(before: Event, event: Event) -> Think | None:
    if isinstance(before, Think) and isinstance(event, Think) and before.run == event.run:
        return Think(run=before.run, text=before.text + event.text)
    return None


@cache
def _publisher() -> Publisher:
    return Publisher()


def _forget() -> None:
    """A forked child has neither its parent's thread nor a right to its sockets and its events."""
    _publisher.cache_clear()
    redis_client.cache_clear()


os.register_at_fork(after_in_child=_forget)
