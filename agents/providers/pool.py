"""Providers on loan. Each run has a connection of its own: one HTTP pool shared by many runs is quadratic."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

from agents.providers.base import Endpoint, Provider
from agents.providers.catalog import connect


class Closable(Protocol):
    def close(self) -> None: ...


class FreeList[K, T: Closable]:
    """Things that are costly to make, kept for the next who needs one. Thread-safe; the oldest make room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._free: list[tuple[K, T]] = []

    def take(self, key: K) -> T | None:
        """Return the one given back last under `key`, None when there is none."""
        with self._lock:
            for at in range(len(self._free) - 1, -1, -1):
                if self._free[at][0] == key:
                    return self._free.pop(at)[1]
        return None

    def give(self, key: K, item: T) -> None:
        """Keep a usable `item` for later; the giver must not touch it any more."""
        with self._lock:
            self._free.append((key, item))
            surplus = self._free[: -self._limit]
            del self._free[: -self._limit]
        for _, old in surplus:
            old.close()


@contextlib.contextmanager
def lease(endpoint: Endpoint) -> Iterator[Provider]:
    """Lend a provider to one run, which must not share it.

    What a provider keeps of its conversation goes with it; its connection stays in a free list for the next run.
    """
    provider = connect(endpoint)
    try:
        yield provider
    finally:
        provider.close()
