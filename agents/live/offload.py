"""Blocking work for the async faces: queries and rendering, in threads, with the database connection given back."""

from collections.abc import Callable

from channels.db import database_sync_to_async


async def offload[**P, R](work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `work` in one of the loop's threads. Unlike sync_to_async's default, viewers do not queue for one thread."""
    result: R = await database_sync_to_async(work, thread_sensitive=False)(*args, **kwargs)
    return result
