"""The event stream of a thread for devices: server-sent events over HTTP, resumable by Last-Event-ID."""

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final
from uuid import UUID

from django.http import StreamingHttpResponse

from agents.live.heard import Heard
from agents.live.hub import Arrival, Closed, Feed, hub
from agents.live.keys import kind_of
from agents.live.offload import offload
from agents.live.seats import seats
from agents.live.snapshot import snapshot
from memory.encoding import dumps

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 15
SLOW_SECONDS: Final = 10
CHECK_SECONDS: Final = 60
HEARTBEAT: Final = b": still here\n\n"

type Allowed = Callable[[], bool]


def event_stream(
    thread_id: UUID, user_id: int, last_event_id: str | None, allowed: Allowed | None = None
) -> StreamingHttpResponse:
    """Answer with the thread's events. The caller has checked that the user may see the thread.

    The first frame is `hello` with an id. When `last_event_id` is missing or too old, `reset` follows with
    {messages, run, partial}; from then on each event comes as it was published, with its id. Frames that are ready at
    the same moment leave together.

    Args:
        user_id: who counts as looking on while it is open.
        allowed: asked each minute, in a thread of its own; the stream ends once it says no.
    """
    return streaming(user_id, _chunks(thread_id, last_event_id or "", allowed))


def streaming(user_id: int, chunks: AsyncGenerator[bytes]) -> StreamingHttpResponse:
    """Answer with chunks of frames as they come. user_id: who counts as looking on while it is open."""
    response = StreamingHttpResponse(_seated(user_id, chunks), content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    response["Content-Encoding"] = "identity"  # compression would hold the events back
    return response


async def _seated(user_id: int, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Those who came at the same moment were all let in. A stream that fails ends: its client comes back with its last
    id, as after an outage of the database."""
    if not seats.begin(user_id):
        return
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    except Exception:
        logger.exception("a stream failed")
    finally:
        seats.end(user_id)


async def _chunks(thread_id: UUID, after: str, allowed: Allowed | None) -> AsyncGenerator[bytes]:
    """End with a client that takes more than ten seconds for a chunk, too: it comes back with its last id."""
    leave, heard = Pass(allowed), Heard(thread_id)
    async with hub().attach(thread_id, after) as feed:
        greeted = feed.resumed
        if greeted:
            yield _hello(after)
            await offload(heard.begin)
        while await leave.valid():
            try:
                arrived = await feed.arrivals(HEARTBEAT_SECONDS)
            except Closed:
                return
            if any(each.is_reset for each in arrived):
                await offload(heard.begin)
                chunk = await _anew(feed, thread_id, greeted)
                greeted = True
            else:
                chunk = b"".join(map(_event, arrived)) or HEARTBEAT
                for each in arrived:
                    heard.hear(each.payload)
                if heard.is_live and not arrived:
                    await offload(heard.look)
            handed_over = time.monotonic()
            yield chunk
            if time.monotonic() - handed_over > SLOW_SECONDS:
                return


async def _anew(feed: Feed, thread_id: UUID, greeted: bool) -> bytes:
    """Take a snapshot, from which the feed goes on. Without Redis its id is one that no stream has."""
    cursor, state = await offload(snapshot, thread_id)
    feed.skip_to(cursor)
    cursor = cursor or "0-0"
    return (b"" if greeted else _hello(cursor)) + frame(cursor, "reset", dumps(state))


def _hello(cursor: str) -> bytes:
    return frame(cursor, "hello", b"{}")


def _event(arrival: Arrival) -> bytes:
    return frame(arrival.id, kind_of(arrival.payload), arrival.payload)


def frame(event_id: str, kind: str, data: bytes) -> bytes:
    """One event of a stream. data: JSON, on one line."""
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
