"""The event loop on which this process speaks to MCP servers, in a thread of its own, from its first use on."""

import asyncio
import atexit
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Final

from memory.pool import orm
from tools.cancel import CancelToken

LOOK_SECONDS: Final = 0.5
"""Between two looks at how far a call is."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_process = 0
_database = ThreadPoolExecutor(2, "mcp-database")
_names = ThreadPoolExecutor(8, "mcp-names")


def submit[T](work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` there. Cancelling the future cancels the work."""
    return asyncio.run_coroutine_threadsafe(work, _running())


def ask[T](
    work: Coroutine[Any, Any, T], seconds: float, cancel: CancelToken, meanwhile: Callable[[], None] | None = None
) -> T:
    """Wait for `work` on the loop; any thread but that.

    Args:
        meanwhile: called now and then while it waits.

    Raises:
        Cancelled: as `cancel` says; the work was told to stop.
        TimeoutError: it took longer.
    """
    future = submit(work)

    def stop() -> None:
        future.cancel()

    with cancel.on_cancel(stop):
        try:
            return _waited(future, seconds, meanwhile)
        except CancelledError:
            cancel.check()
            raise
        except TimeoutError:
            future.cancel()
            raise


def _waited[T](future: Future[T], seconds: float, meanwhile: Callable[[], None] | None) -> T:
    until = time.monotonic() + seconds
    while meanwhile is not None and until - time.monotonic() > LOOK_SECONDS:
        wait([future], LOOK_SECONDS)
        if future.done():
            break
        meanwhile()
    return future.result(max(0.0, until - time.monotonic()))


async def in_database[**P, T](work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Use the ORM from the loop, in one of a few threads that wait for nothing else."""

    def alone() -> T:
        with orm():
            return work(*args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(_database, alone)


async def look_up(host: str, port: int) -> list[Any]:
    """As `socket.getaddrinfo`, in one of a few threads that wait for nothing else: a slow name costs no database."""
    look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return await asyncio.get_running_loop().run_in_executor(_names, look)


def _running() -> asyncio.AbstractEventLoop:
    global _loop, _process
    with _lock:
        if _loop is None or _process != os.getpid():  # a fork has the loop, but not its thread
            _loop, _process = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, daemon=True, name="mcp").start()
        return _loop


def _forget_threads() -> None:
    global _database, _names, _lock
    _database, _names = ThreadPoolExecutor(2, "mcp-database"), ThreadPoolExecutor(8, "mcp-names")
    _lock = threading.Lock()


def at_exit(work: Any, seconds: float) -> None:
    """Do `work()` there when this process ends, for some seconds at most."""

    def last() -> None:
        if _loop is not None and _process == os.getpid():
            try:
                submit(work()).result(seconds)
            except Exception:  # noqa: BLE001 (the process ends anyway)
                return

    atexit.register(last)


os.register_at_fork(after_in_child=_forget_threads)
