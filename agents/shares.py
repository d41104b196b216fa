"""No user holds what all share: threads, connections, questions to other servers (threat T16)."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings


class Shares:
    """How many of one thing each user has at once, in this process. Thread-safe."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    def begin(self, user_id: int) -> bool:
        """Count one more; False when the user has too many. Each that was counted must `end`."""
        with self._lock:
            if self.are_taken(user_id):
                return False
            self._taken[user_id] += 1
            return True

    def end(self, user_id: int) -> None:
        with self._lock:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]

    @contextmanager
    def one(self, user_id: int) -> Iterator[bool]:
        """Count one more while the block runs; yields False, and counts none, when the user has too many."""
        begun = self.begin(user_id)
        try:
            yield begun
        finally:
            if begun:
                self.end(user_id)

    def are_taken(self, user_id: int) -> bool:
        return self._taken[user_id] >= self._most()


requests = Shares(lambda: int(settings.WAYMARK_REQUESTS_PER_USER))
