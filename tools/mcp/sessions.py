"""Connections to MCP servers: one for each server in a process, opened when it is needed and again when it is gone.

All of it runs on the loop of `tools.mcp.loop`; only `ask` is for other threads.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import structlog
from django.conf import settings

from tools.cancel import CancelToken
from tools.mcp import loop
from tools.mcp.bearer import NEEDED, challenge_of
from tools.mcp.complaints import words_of
from tools.mcp.transports import Target, client_of

if TYPE_CHECKING:
    from mcp import Client

log = structlog.get_logger(__name__)

IDLE_SECONDS: Final = 900
LOOK_SECONDS: Final = 0.5
"""Between two looks at how far a call is."""
MOST_PAGES: Final = 20
MOST_LISTED: Final = 2_000
# After so many failures in a row nobody is tried for a while, which doubles. Seconds.
FAILURES_ALLOWED: Final = 3
FIRST_PAUSE: Final = 2.0
LONGEST_PAUSE: Final = 300.0


class Unreachable(Exception):
    """No connection came about, or it could not be asked for its tools. Nothing was called. In words for people."""


class SignInNeeded(Unreachable):
    """The server lets nobody in who has not signed in. challenge: its WWW-Authenticate; may be empty."""

    def __init__(self, challenge: str) -> None:
        super().__init__(NEEDED)
        self.challenge = challenge


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

    async def open(self) -> None:
        """Raises: whatever the SDK or the network raises; TimeoutError."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(ready))
        try:
            await asyncio.wait_for(asyncio.shield(ready), settings.WAYMARK_MCP_CONNECT_SECONDS)
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


@dataclass
class _Place:
    """What is kept of one server."""

    session: Session | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: int = 0
    not_before: float = 0


_places: dict[UUID, _Place] = {}


async def _listing(target: Target) -> tuple[Session, list[dict[str, Any]]]:
    """An open connection and what its server offers this very moment; opened anew when the one at hand is dead.

    Raises: Unreachable.
    """
    place = _places.setdefault(target.server_id, _Place())
    async with place.lock:
        _close_idle(place)
        if place.session is not None and (not place.session.is_open or place.session.target != target):
            place.session.retire()
            place.session = None
        if place.session is not None:
            try:
                return place.session, await _tools(place.session)
            except Exception as error:
                if place.session.users and isinstance(error, TimeoutError):
                    raise Unreachable("The server is busy with other calls and does not answer.") from error
                log.info("mcp connection lost", server=target.name, error=type(_innermost(error)).__name__)
                place.session.retire()
                place.session = None
        return await _opened(place, target)


async def _opened(place: _Place, target: Target) -> tuple[Session, list[dict[str, Any]]]:
    wait = place.not_before - time.monotonic()
    if wait > 0:
        raise Unreachable(f"The server failed {place.failures} times in a row; it is tried again in {wait:.0f} s.")
    session = Session(target)
    try:
        await session.open()
        found = await _tools(session)
    except Exception as error:
        session.retire()
        if (challenge := challenge_of(_innermost(error))) is not None:
            raise SignInNeeded(challenge) from error
        _fail(place)
        raise Unreachable(f"The server could not be reached: {_why(error)}") from error
    place.session, place.failures, place.not_before = session, 0, 0
    return session, found


def _fail(place: _Place) -> None:
    place.failures += 1
    over = place.failures - FAILURES_ALLOWED
    if over >= 0:
        place.not_before = time.monotonic() + min(FIRST_PAUSE * 2**over, LONGEST_PAUSE)


def _close_idle(but: _Place) -> None:
    for place in [*_places.values()]:
        session = place.session
        if session is None or place is but or session.users:
            continue
        if time.monotonic() - session.used_at > IDLE_SECONDS:
            session.retire()
            place.session = None


async def _tools(session: Session) -> list[dict[str, Any]]:
    """What the server offers, over all pages."""
    assert session.client is not None
    session.used_at = time.monotonic()
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    async with asyncio.timeout(settings.WAYMARK_MCP_CONNECT_SECONDS):
        for _ in range(MOST_PAGES):
            page = await session.client.list_tools(cursor=cursor)
            found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor or len(found) >= MOST_LISTED:
                break
    return found[:MOST_LISTED]


def _innermost(error: BaseException) -> BaseException:
    """Task groups wrap what went wrong."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _why(error: BaseException) -> str:
    error = _innermost(error)
    if isinstance(error, TimeoutError):
        return f"it took longer than {settings.WAYMARK_MCP_CONNECT_SECONDS:g} seconds."
    return words_of(error)


def tools_of(target: Target, cancel: CancelToken) -> list[dict[str, Any]]:
    """What a server offers now.

    Raises:
        Unreachable: it cannot be asked.
        Cancelled: as `cancel` says.
    """

    async def work() -> list[dict[str, Any]]:
        _session, found = await _listing(target)
        return found

    return ask(work(), settings.WAYMARK_MCP_CONNECT_SECONDS * 3, cancel)


async def using[T](target: Target, work: Callable[["Client", list[dict[str, Any]]], Awaitable[T]]) -> T:
    """Do something with a connection, after a look at what its server offers.

    Raises:
        Unreachable: before `work` was begun; and whatever that raises.
    """
    session, found = await _listing(target)
    assert session.client is not None
    session.users += 1
    try:
        return await work(session.client, found)
    finally:
        session.used()


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
    future = loop.submit(work)

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


def forget(server_id: UUID) -> None:
    """Close the connection of a server that has changed or is gone. Other processes notice at its next use."""

    async def work() -> None:
        place = _places.pop(server_id, None)
        if place is not None and place.session is not None:
            await place.session.close()

    loop.submit(work())


async def close_all() -> None:
    """Close every connection of this process."""
    sessions = [place.session for place in _places.values() if place.session is not None]
    _places.clear()
    await asyncio.gather(*(session.close() for session in sessions))


loop.at_exit(close_all, 5.0)
