"""The event stream of a thread for devices: server-sent events over HTTP, resumable by Last-Event-ID."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final
from uuid import UUID

import orjson
from django.http import HttpRequest, StreamingHttpResponse

from agents.live.hub import Closed, Feed, hub
from agents.live.keys import kind_of
from agents.live.offload import offload
from agents.live.snapshot import snapshot

HEARTBEAT_SECONDS: Final = 15
SLOW_SECONDS: Final = 10
CHECK_SECONDS: Final = 60
HEARTBEAT: Final = b": still here\n\n"

type Allowed = Callable[[], bool]


async def event_stream(
    request: HttpRequest, thread_id: UUID, last_event_id: str | None, allowed: Allowed | None = None
) -> StreamingHttpResponse:
    """Answer with the thread's events. The caller has checked that the user may see the thread.

    The first frame is `hello` with an id. When `last_event_id` is missing or too old, `reset` follows with
    {messages, run, partial}; from then on each event comes as it was published, with its id.

    Args:
        allowed: asked each minute, in a thread of its own; the stream ends once it says no.
    """
    frames = _paced(_frames(thread_id, last_event_id or "", allowed))
    response = StreamingHttpResponse(frames, content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    response["Content-Encoding"] = "identity"  # compression would hold the events back
    return response


async def _paced(frames: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """End the stream of a client that takes more than ten seconds for a frame: it comes back with its last id."""
    async with aclosing(frames):
        async for frame in frames:
            handed_over = time.monotonic()
            yield frame
            if time.monotonic() - handed_over > SLOW_SECONDS:
                return


async def _frames(thread_id: UUID, after: str, allowed: Allowed | None) -> AsyncGenerator[bytes]:
    leave = Pass(allowed)
    async with hub().attach(thread_id, after) as feed:
        if feed.resumed:
            yield _frame(after, "hello", b"{}")
        greeted = feed.resumed
        while await leave.valid():
            try:
                arrival = await feed.get(HEARTBEAT_SECONDS)
            except Closed:
                return
            if arrival is None:
                yield HEARTBEAT
            elif arrival.is_reset:
                cursor, state = await _state(feed, thread_id)
                if not greeted:
                    yield _frame(cursor, "hello", b"{}")
                greeted = True
                yield _frame(cursor, "reset", state)
            else:
                yield _frame(arrival.id, kind_of(arrival.payload), arrival.payload)


async def _state(feed: Feed, thread_id: UUID) -> tuple[str, bytes]:
    """Take a snapshot, from which the feed goes on. Without Redis its id is one that no stream has."""
    cursor, state = await offload(snapshot, thread_id)
    feed.skip_to(cursor)
    return cursor or "0-0", orjson.dumps(state)


def _frame(event_id: str, kind: str, data: bytes) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id.encode(), kind.encode(), data)


class Pass:
    """Whether a viewer may still look, asked once a minute."""

    def __init__(self, allowed: Allowed | None) -> None:
        self._allowed = allowed
        self._checked = time.monotonic()

    async def valid(self) -> bool:
        if self._allowed is None or time.monotonic() - self._checked < CHECK_SECONDS:
            return True
        self._checked = time.monotonic()
        return await offload(self._allowed)
