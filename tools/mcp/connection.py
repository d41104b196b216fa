"""One connection to an MCP server, and what it lists. On the loop of `tools.mcp.loop`."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from tools.mcp.complaints import words_of
from tools.mcp.transports import Target, client_of

if TYPE_CHECKING:
    from mcp import Client

MOST_PAGES: Final = 20
MOST_LISTED: Final = 2_000


@dataclass(eq=False)
class Session:
    """A connection that its own task opens and closes, because the SDK wants both done by the same."""

    target: Target
    client: "Client | None" = None
    used_at: float = field(default_factory=time.monotonic)
    users: int = 0
    is_retired: bool = False
    _leave: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._task is not None and not self._task.done() and not self._leave.is_set()

    @property
    def is_over(self) -> bool:
        """Nothing of it is left."""
        return self._task is None or self._task.done()

    async def open(self) -> None:
        """Raises: whatever the SDK or the network raises; TimeoutError."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(ready))
        try:
            async with _patience():
                await asyncio.shield(ready)
        except BaseException:
            self._task.cancel()
            ready.cancel()
            raise

    async def close(self) -> None:
        self._leave.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=10)
            self._task.cancel()

    def retire(self) -> None:
        """Nobody is given it any more; it ends once nobody uses it."""
        self.is_retired = True
        if not self.users:
            self._leave.set()

    def used(self) -> None:
        """Somebody is done with it."""
        self.users -= 1
        self.used_at = time.monotonic()
        if self.is_retired:
            self.retire()

    def is_lost(self, error: Exception) -> bool:
        """Whether a call ended by `error` because the connection did."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        return not self.is_open or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED)

    async def tools(self) -> list[dict[str, Any]]:
        """What the server offers, over all pages. Raises: ValueError: that is more than is read."""
        assert self.client is not None
        self.used_at = time.monotonic()
        found: list[dict[str, Any]] = []
        left = settings.WAYMARK_MCP_BYTES
        cursor: str | None = None
        async with _patience():
            for _ in range(MOST_PAGES):
                page = await self.client.list_tools(cursor=cursor)
                tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                left -= len(page.model_dump_json())  # which knows figures of any size
                if left < 0:
                    raise ValueError("it lists more than is read.")
                found += tools
                cursor = page.next_cursor
                if not cursor or len(found) >= MOST_LISTED:
                    break
        return found[:MOST_LISTED]

    async def _keep(self, ready: "asyncio.Future[None]") -> None:
        try:
            async with client_of(self.target) as self.client:
                if not ready.done():
                    ready.set_result(None)
                await self._leave.wait()
        except asyncio.CancelledError:
            if not ready.done():
                ready.cancel()
        except Exception as error:  # noqa: BLE001 (told to whoever waits; later, the next one connects anew)
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._leave.set()


@asynccontextmanager
async def _patience() -> AsyncIterator[None]:
    """Raises: TimeoutError: in words, when that is what took too long."""
    seconds = settings.WAYMARK_MCP_CONNECT_SECONDS
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError as error:
        raise TimeoutError(f"it took longer than {seconds:g} seconds.") if limit.expired() else error from error


def innermost(error: BaseException) -> BaseException:
    """Task groups wrap what went wrong."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def is_timeout(error: Exception) -> bool:
    from mcp import MCPError
    from mcp_types import REQUEST_TIMEOUT

    return isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT)


def why(error: BaseException) -> str:
    """In words for people."""
    return words_of(innermost(error))
