"""The cooperative stop signal that travels with a run: checked between tokens and tools."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

# Why a run stops, in words that end a sentence about what it was at.
BY_USER: Final = "stopped by the user"
SHUT_DOWN: Final = "Waymark was stopped in the middle of it, by nobody's wish"
LOST: Final = "its worker had to let go of it, by nobody's wish"


class Cancelled(Exception):
    """The run must stop now; the argument says why in words for the user."""


class CancelToken:
    """Set once, by any thread. Callbacks break what blocks, such as a socket read."""

    def __init__(self) -> None:
        self.reason = ""  # one of the above, or that it took too long
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._event.is_set()

    def cancel(self, reason: str) -> None:
        with self._lock:
            if self._event.is_set():
                return
            self.reason = reason
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raise Cancelled when the token is set."""
        if self._event.is_set():
            raise Cancelled(self.reason)

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake and raise Cancelled as soon as the token is set."""
        if self._event.wait(seconds):
            self.check()

    @contextlib.contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` once if the token is set while the block runs (or is set already). It must not raise."""
        with self._lock:
            already = self._event.is_set()
            if not already:
                self._callbacks.append(callback)
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._callbacks.remove(callback)
