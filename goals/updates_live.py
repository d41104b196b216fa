"""What is new, as it happens: read anew at each note that something has changed, from where the look before ended."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User

from agents.live.hub import Closed, hub
from agents.live.offload import offload
from agents.live.sse import HEARTBEAT, HEARTBEAT_SECONDS, Allowed, Pass, frame
from goals.updates import Kind, Update, conversations, horizon, updates
from memory.encoding import dumps

PAUSE_SECONDS: Final = 1
"""Between two looks, however much happens."""
LOOK_SECONDS: Final = 60
"""After which it is looked without a note: one may be lost."""


@dataclass(frozen=True, slots=True)
class News:
    since: datetime
    until: datetime
    updates: Sequence[Update]


def news(user: User, since: datetime) -> News:
    """What is new since a moment; the next look begins at its end."""
    until = horizon()
    return News(since, until, updates(user, since, conversations(user)))


async def follow(
    user: User, since: datetime, represent: Callable[[News], dict[str, Any]], allowed: Allowed
) -> AsyncGenerator[bytes]:
    """Frames of a stream. Notes are listened to before the first look, so that nothing falls between; what one look has
    told the next one leaves out.

    Args:
        allowed: asked each minute; the stream ends once it says no.
    """
    leave, told, is_first = Pass(allowed), frozenset[tuple[Kind, UUID]](), True
    async with hub().listen(user.pk) as notes:
        while await leave.valid():
            found, looked = await offload(news, user, since), time.monotonic()
            fresh = [each for each in found.updates if (each.kind, each.id) not in told]
            if fresh or is_first:
                said = dumps(represent(replace(found, updates=fresh)))
                yield frame(found.until.isoformat(), "updates", said)
            told, is_first = frozenset((each.kind, each.id) for each in found.updates), False
            since = found.until
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                while not await notes.arrivals(HEARTBEAT_SECONDS) and time.monotonic() - looked < LOOK_SECONDS:
                    yield HEARTBEAT
            except Closed:
                return
