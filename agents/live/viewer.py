"""One socket's view of a thread: events in, frames out.

Events only say that something changed. What it looks like now is drawn from the database by the functions that draw
the page, and what the page has already is not sent again. Text on its way is drawn from the events, at most ten times
a second, and less often when it has become long.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

import orjson
from django.utils.translation import gettext as _

from agents.live import frames, screens
from agents.live.events import ends_text
from agents.live.heard import SILENT_SECONDS, Heard
from agents.live.hub import Arrival, Feed, hub
from agents.live.keys import kind_of, order
from agents.live.offload import offload
from agents.live.screen import Screen, in_zone_of, looked_at_again, whole
from agents.live.snapshot import Partial, Place, place
from memory.models import Thread

REDRAW_SECONDS: Final = 0.1

REST: Final = 4
"""A drawing of text on its way is followed by a pause of at least so many times as long as it took."""

type Send = Callable[[str], Awaitable[None]]


class Viewer:
    def __init__(self, thread: Thread, send: Send) -> None:
        self._thread = thread
        self._send = send
        self._sent = frames.Sent()
        self._heard = Heard(thread.pk)
        self._text: Partial | None = None
        self._torn = False
        self._text_from = ""
        self._redraw_at = 0.0

    async def follow(self, after: str) -> None:
        """Send what happens after the event `after`, until cancelled.

        Raises:
            Closed: the page is too slow.
        """
        async with hub().attach(self._thread.pk, after) as feed:
            if feed.resumed:
                self._take_up_text(await offload(place, self._thread.pk))
                await offload(self._heard.begin)
            while True:
                batch = await self._next(feed)
                if not batch:
                    await offload(self._heard.look)
                elif any(each.is_reset for each in batch):
                    await self._start_over(feed, after)
                else:
                    await self._tell(batch)

    async def _next(self, feed: Feed) -> list[Arrival]:
        """Return what has arrived: at once, but text alone not before it is time to draw it again. Nothing, when a live
        run falls silent."""
        batch = await feed.arrivals(SILENT_SECONDS if self._heard.is_live else None)
        while batch and all(kind_of(each.payload) == "think" for each in batch):
            pause = self._redraw_at - time.monotonic()
            more = await feed.arrivals(pause) if pause > 0 else []
            if not more:
                self._redraw_at = time.monotonic() + REDRAW_SECONDS
                break
            batch += more
        return batch

    def _take_up_text(self, where: Place) -> None:
        self._text, self._torn, self._text_from = where.partial, where.torn, where.cursor

    async def _start_over(self, feed: Feed, after: str) -> None:
        """Draw everything new. A page that is ahead of the stream (another Redis) loads itself again."""
        await offload(self._heard.begin)
        screen = await offload(_whole, self._thread)
        feed.skip_to(screen.where.cursor)
        if screen.where.cursor and order(after) > order(screen.where.cursor):
            await self._send(orjson.dumps({"type": "reload"}).decode())
            return
        self._take_up_text(screen.where)
        self._sent = frames.Sent()
        await self._send(frames.frame(screen.where.cursor, self._sent.everything(screen)))

    async def _tell(self, batch: list[Arrival]) -> None:
        """Send one frame for all of `batch`."""
        events = [(each, orjson.loads(each.payload)) for each in batch]
        for arrival, event in events:
            self._heard.hear(arrival.payload)
            if order(arrival.id) > order(self._text_from):
                self._write(event)
        seq = batch[-1].id
        durable = [event for _, event in events if event["type"] != "think"]
        if durable:
            screen = await screens.changed_screen(self._thread, seq, durable)
            text = self._text.text if self._text and screen.live and self._text.run == screen.live.pk else ""
            await self._send(frames.frame(seq, self._sent.news(screen, text), announcement(durable)))
        elif self._text:
            await self._send(frames.frame(seq, await self._drawn(self._text)))

    async def _drawn(self, text: Partial) -> str:
        started = time.monotonic()
        drawn = await asyncio.to_thread(self._sent.writing, text)
        now = time.monotonic()
        self._redraw_at = max(self._redraw_at, now + REST * (now - started))
        return drawn

    def _write(self, event: dict[str, Any]) -> None:
        """Let an event grow or end the text on its way, as the publisher does with the kept one."""
        if event["type"] == "think":
            if self._torn:
                return
            run = UUID(event["run"])
            before = self._text.text if self._text and self._text.run == run else ""
            self._text = Partial(run, before + event["text"])
        elif ends_text(event) and (self._text is None or str(self._text.run) == event["run"]):
            self._text, self._torn = None, False


def _whole(thread: Thread) -> Screen:
    with in_zone_of(thread):
        return whole(looked_at_again(thread))


def announcement(events: list[dict[str, Any]]) -> str:
    """Say the last change of state for the ear: states, not words of the answer."""
    for event in reversed(events):
        if event["type"] == "run" and event.get("pause"):
            return _("Waiting for the model's provider.")
        if event["type"] == "run" and (words := _states().get(event["status"])):
            return words
        if event["type"] == "error":
            return str(event["text"])
    return ""


def _states() -> dict[str, str]:
    return {
        "running": _("The agent is at work."),
        "retry_wait": _("The agent cannot go on right now. It tries again soon."),
        "waiting_budget": _("The budget is spent. The agent waits until you allow more."),
        "succeeded": _("The agent has finished."),
        "cancelled": _("The agent was stopped."),
    }
