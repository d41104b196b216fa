"""Drawings shared by the sockets of this process: several tabs on one thread cost one drawing per change."""

import asyncio
from collections import OrderedDict
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

from agents.live.offload import offload
from agents.live.screen import Screen, changed, in_zone_of, looked_at_again
from memory.models import Thread

KEPT: Final = 64

type Key = tuple[UUID, str, frozenset[UUID], frozenset[UUID]]
type Shelf = OrderedDict[Key, asyncio.Task[Screen]]

_shelves: WeakKeyDictionary[asyncio.AbstractEventLoop, Shelf] = WeakKeyDictionary()


async def changed_screen(thread: Thread, event_id: str, events: list[dict[str, Any]]) -> Screen:
    """Draw what these events changed, at the earliest as it was at the event `event_id`."""
    runs = frozenset(UUID(event["run"]) for event in events if event.get("run"))
    messages = frozenset(UUID(event["message"]) for event in events if event.get("message"))
    key = (thread.pk, event_id, runs, messages)
    shelf = _shelves.setdefault(asyncio.get_running_loop(), OrderedDict())
    if key not in shelf:
        shelf[key] = asyncio.create_task(offload(_changed, thread, runs, messages))
        if len(shelf) > KEPT:
            shelf.popitem(last=False)
    return await asyncio.shield(shelf[key])


def _changed(thread: Thread, runs: frozenset[UUID], messages: frozenset[UUID]) -> Screen:
    with in_zone_of(thread):
        return changed(looked_at_again(thread), runs, messages)
