"""The websocket of a page: one per tab, from the server to the page. All a page says is where it stands."""

import asyncio
import logging
import time
from collections import deque
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Final
from uuid import UUID

import orjson
from channels.auth import get_user
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import User
from django.template.loader import render_to_string

from agents.live import frames
from agents.live.hub import Closed, Feed, hub
from agents.live.offload import offload
from agents.live.seats import seats
from agents.live.viewer import Viewer
from memory.models import Thread

logger = logging.getLogger(__name__)

SIGNED_OUT: Final = 4401
NOT_FOUND: Final = 4404
MISUSED: Final = 4400
TOO_MANY: Final = 4429
TOO_SLOW: Final = 1013

FRAME_LENGTH: Final = 256
HELLOS_A_MINUTE: Final = 20
SEND_SECONDS: Final = 10
SESSION_SECONDS: Final = 60
NOTE_SECONDS: Final = 1


class LiveConsumer(AsyncWebsocketConsumer):
    """Follows the user's notes always, and a thread once the page has said hello."""

    async def connect(self) -> None:
        """Accept even to refuse: a handshake that fails has no code, and the page would try for ever."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._seat = ExitStack()
        self._hellos: deque[float] = deque(maxlen=HELLOS_A_MINUTE)
        self._thread: Thread | None = None
        await self.accept()
        user = self.scope["user"]
        if not user.is_authenticated:
            await self.close(SIGNED_OUT)
            return
        if not seats.begin(user.pk):
            await self.close(TOO_MANY)
            return
        self._seat.callback(seats.end, user.pk)
        thread_id = self.scope["url_route"]["kwargs"].get("thread_id")
        if thread_id is not None:
            self._thread = await offload(_own_thread, user, thread_id)
            if self._thread is None:
                await self.close(NOT_FOUND)
                return
        self._start("notes", self._follow_notes(user.pk))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        after = _hello(text_data or "")
        if after is None or self._is_too_fast():
            await self.close(MISUSED)
        elif self._thread is not None:
            self._start("thread", self._follow_thread(self._thread, after))

    async def disconnect(self, code: int) -> None:
        self._seat.close()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _is_too_fast(self) -> bool:
        now = time.monotonic()
        full = len(self._hellos) == HELLOS_A_MINUTE and now - self._hellos[0] < 60
        self._hellos.append(now)
        return full

    def _start(self, name: str, work: Any) -> None:
        """Begin to follow something; a second hello starts anew."""
        if before := self._tasks.pop(name, None):
            before.cancel()
        self._tasks[name] = asyncio.create_task(self._guarded(work))

    async def _guarded(self, work: Any) -> None:
        try:
            await work
        except (Closed, TimeoutError):
            await self.close(TOO_SLOW)
        except Exception:
            logger.exception("a websocket failed")
            await self.close(1011)

    async def _follow_thread(self, thread: Thread, after: str) -> None:
        await Viewer(thread, self._send).follow(after)

    async def _follow_notes(self, user_id: int) -> None:
        """Tell of changes elsewhere, and make sure every minute and at each sign-out that the session still holds."""
        async with hub().listen(user_id) as feed:
            checked, up = time.monotonic(), True
            while True:
                kinds = await _notes(feed)
                if "signed_out" in kinds or time.monotonic() - checked > SESSION_SECONDS:
                    checked = time.monotonic()
                    if not await self._is_signed_in(user_id):
                        await self.close(SIGNED_OUT)
                        return
                if "wire" in kinds and up != hub().is_up:
                    up = hub().is_up
                    await self._send(frames.wire(up=up))
                if "changed" in kinds:
                    await self._send(frames.frame("", _refresh()))
                    await asyncio.sleep(NOTE_SECONDS)

    async def _is_signed_in(self, user_id: int) -> bool:
        """Read the session anew: it is gone after sign-out, and its hash is stale after a change of password."""
        store = import_module(settings.SESSION_ENGINE).SessionStore
        session = store(self.scope["session"].session_key)
        user = await get_user({"session": session})
        return bool(user.is_authenticated and user.is_active and user.pk == user_id)

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await self.send(text_data=text)


def _own_thread(user: User, thread_id: UUID) -> Thread | None:
    return Thread.objects.for_user(user).select_related("user").filter(pk=thread_id).first()


def _hello(text: str) -> str | None:
    """Return where the page stands, or None when it said something else."""
    if len(text) > FRAME_LENGTH:
        return None
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(said, dict) or set(said) != {"type", "after"} or said["type"] != "hello":
        return None
    return said["after"] if isinstance(said["after"], str) else None


async def _notes(feed: Feed) -> set[str]:
    """Return the kinds of notes that came, at the latest after a minute."""
    arrived = await feed.arrivals(SESSION_SECONDS)
    return {str(orjson.loads(each.payload).get("type")) for each in arrived}


def _refresh() -> str:
    return frames.partial("#live", "innerHTML", render_to_string("agents/parts/refresh.html"))
