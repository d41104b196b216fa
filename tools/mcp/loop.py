"""The event loop on which this process speaks to MCP servers, in a thread of its own, from its first use on."""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_process = 0


def submit[T](work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` there. Cancelling the future cancels the work."""
    return asyncio.run_coroutine_threadsafe(work, _running())


def _running() -> asyncio.AbstractEventLoop:
    global _loop, _process
    with _lock:
        if _loop is None or _process != os.getpid():  # a fork has the loop, but not its thread
            _loop, _process = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, daemon=True, name="mcp").start()
        return _loop


def at_exit(work: Any, seconds: float) -> None:
    """Do `work()` there when this process ends, for some seconds at most."""

    def last() -> None:
        if _loop is not None and _process == os.getpid():
            try:
                submit(work()).result(seconds)
            except Exception:  # noqa: BLE001 (the process ends anyway)
                return

    atexit.register(last)
