"""No user holds all threads of the web process (threat T16)."""

import threading
from collections import Counter

MOST = 12
"""Requests of one user at work at once: half of the threads (config.handler), twice what a browser opens."""

_at_work: Counter[int] = Counter()
_lock = threading.Lock()


def begin(user_id: int) -> bool:
    """Count a request; False when the user has too many at work. Each that was counted must `end`."""
    with _lock:
        if _at_work[user_id] >= MOST:
            return False
        _at_work[user_id] += 1
        return True


def end(user_id: int) -> None:
    with _lock:
        _at_work[user_id] -= 1
        if not _at_work[user_id]:
            del _at_work[user_id]
