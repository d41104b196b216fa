"""Names in Redis, and what the ids of a stream mean. Shared by those who publish and those who look on."""

from typing import Final
from uuid import UUID

from django.conf import settings

KEPT_SECONDS: Final = 3600

RESET: Final = b'{"type":"reset"}'
"""A gap: something may have been lost here. Whoever reads it takes a new snapshot."""

NOWHERE: Final = (0, 0)

LONGEST_NUMBER: Final = 20
"""Digits. Redis counts in 64 bits, and Python refuses to read numbers of thousands of digits."""


def stream_key(thread_id: UUID) -> str:
    """The last events of a thread, a capped stream. Gone after an hour of silence."""
    return f"{settings.REDIS_PREFIX}s:{thread_id}"


def partial_key(thread_id: UUID) -> str:
    """The text of the step that is being written: the run's id (36 characters) and then the text."""
    return f"{settings.REDIS_PREFIX}t:{thread_id}"


def thread_channel(thread_id: UUID) -> str:
    return f"{settings.REDIS_PREFIX}p:{thread_id}"


def user_channel(user_id: int) -> str:
    return f"{settings.REDIS_PREFIX}u:{user_id}"


def order(event_id: str) -> tuple[int, int]:
    """Return what to compare stream ids by. Anything that is not an id comes before everything."""
    milliseconds, _, number = event_id.partition("-")
    if _is_number(milliseconds) and _is_number(number):
        return int(milliseconds), int(number)
    return NOWHERE


def _is_number(text: str) -> bool:
    return len(text) <= LONGEST_NUMBER and text.isascii() and text.isdigit()


def kind_of(payload: bytes) -> str:
    """Return an event's `type` without parsing it: every event is written with its type first."""
    return payload[9 : payload.index(b'"', 9)].decode()
