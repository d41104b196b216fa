"""How many may look on for one user at once, in one web process (threat T16). Only for the event loop's thread."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

_taken: Counter[int] = Counter()


def are_taken(user_id: int) -> bool:
    """Whether this user's sockets and streams are as many as there may be (WAYMARK_VIEWERS_PER_USER)."""
    most: int = settings.WAYMARK_VIEWERS_PER_USER
    return _taken[user_id] >= most


@contextmanager
def seat(user_id: int) -> Iterator[None]:
    """Count one who looks on while the block runs."""
    _taken[user_id] += 1
    try:
        yield
    finally:
        _taken[user_id] -= 1
        if not _taken[user_id]:
            del _taken[user_id]
