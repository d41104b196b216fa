"""Connections to MCP servers: one for each server in a process, opened when it is needed and again when it is gone, and
closed when nobody uses it or its user has taken the server away.

All of it runs on the loop of `tools.mcp.loop`; only `tools_of` and `forget` are for other threads.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import structlog
from django.conf import settings

from memory.pool import DATABASE_AWAY
from tools.cancel import CancelToken
from tools.mcp import loop
from tools.mcp.bearer import NEEDED, challenge_of
from tools.mcp.connection import Session, innermost, is_timeout, why
from tools.mcp.noting import Notes
from tools.mcp.transports import Target, usable_now

if TYPE_CHECKING:
    from mcp import Client

log = structlog.get_logger(__name__)

IDLE_SECONDS: Final = 900
SWEEP_SECONDS: Final = 30.0
"""Between two looks at what may be closed; so long a server that its user has taken away stays connected at most."""
MOST_SESSIONS: Final = 100
"""In one process."""
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
class _Place:
    """What is kept of one server.

    failures, lost: how often it could not be opened, and was lost during a call, in a row.
    is_gone: nothing may be kept in it any more, whoever still holds it.
    """

    session: Session | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: int = 0
    lost: int = 0
    not_before: float = 0
    notes: Notes = field(default_factory=Notes)
    is_gone: bool = False

    def check(self) -> None:
        """Raises: Unreachable: its user has changed the server since somebody came here."""
        if self.is_gone:
            raise Unreachable("The server was changed or taken away meanwhile.")


_places: dict[UUID, _Place] = {}
_sessions: set[Session] = set()
"""All that are not closed, also those that are being opened, and those that are retired and still used."""
_sweeper: asyncio.Task[None] | None = None


async def _listing(place: _Place, target: Target) -> tuple[Session, list[dict[str, Any]]]:
    """An open connection and what its server offers this very moment; opened anew when the one at hand is dead.

    Raises: Unreachable.
    """
    async with place.lock:
        place.check()
        if place.session is not None and (not place.session.is_open or place.session.target != target):
            place.session.retire()
            place.session = None
        if place.session is not None:
            try:
                found = await place.session.tools()
            except Exception as error:
                place.check()
                if place.session.users and isinstance(error, TimeoutError):
                    raise Unreachable("The server is busy with other calls and does not answer.") from error
                log.info("mcp connection lost", server=target.name, error=type(innermost(error)).__name__)
                place.session.retire()
                place.session = None
            else:
                place.check()
                return place.session, found
        return await _opened(place, target)


async def _opened(place: _Place, target: Target) -> tuple[Session, list[dict[str, Any]]]:
    wait = place.not_before - time.monotonic()
    if wait > 0:
        times = max(place.failures, place.lost)
        raise Unreachable(f"The server failed {times} times in a row; it is tried again in {wait:.0f} s.")
    _make_room()
    session = Session(target)
    _sessions.add(session)
    _start_sweeping()
    try:
        await session.open()
        found = await session.tools()
        place.check()
    except BaseException as error:  # also of a run that is stopped meanwhile: nobody else knows of the connection
        session.retire()
        if isinstance(error, Unreachable) or not isinstance(error, Exception):
            raise
        if (challenge := challenge_of(innermost(error))) is not None:
            raise SignInNeeded(challenge) from error
        place.failures += 1
        _pause(place, place.failures)
        raise Unreachable(f"The server could not be reached: {why(error)}") from error
    place.session, place.failures = session, 0
    return session, found


def _pause(place: _Place, times: int) -> None:
    over = times - FAILURES_ALLOWED
    if over >= 0:
        place.not_before = time.monotonic() + min(FIRST_PAUSE * 2**over, LONGEST_PAUSE)


def _make_room() -> None:
    """Close the connection that was not used for the longest time, when there are as many as there may be.

    Raises: Unreachable: all are in use.
    """
    if sum(session.is_open for session in _sessions) < MOST_SESSIONS:
        return
    free = [place for place in _places.values() if _is_free(place)]
    if not free:
        raise Unreachable("There are as many connections to servers as there may be. Try again in a moment.")
    _close(min(free, key=_used_at))


def _is_free(place: _Place) -> bool:
    """It has a connection, and nobody is about to use it."""
    return place.session is not None and not place.session.users and not place.lock.locked()


def _used_at(place: _Place) -> float:
    assert place.session is not None
    return place.session.used_at


def _close(place: _Place) -> None:
    if place.session is not None:
        place.session.retire()
        place.session = None


def _start_sweeping() -> None:
    global _sweeper
    if _sweeper is None or _sweeper.done():
        _sweeper = asyncio.create_task(_sweep_on())


async def _sweep_on() -> None:
    """As long as there is a connection."""
    while _sessions:
        await asyncio.sleep(SWEEP_SECONDS)
        _sessions.difference_update([session for session in _sessions if session.is_over])
        for place in _places.values():
            if _is_free(place) and time.monotonic() - _used_at(place) > IDLE_SECONDS:
                _close(place)
        try:
            await _close_what_was_taken_away()
        except DATABASE_AWAY:
            log.info("mcp servers cannot be looked up, so connections stay as they are")
        except Exception:
            log.exception("mcp connections were not looked through")


async def _close_what_was_taken_away() -> None:
    """Whoever changes a server tells it to one process, and by its row to all others."""
    before = {server_id: place.session for server_id, place in _places.items() if not place.lock.locked()}
    now = await loop.in_database(usable_now, [*before])
    for server_id, session in before.items():
        place = _places.get(server_id)
        if place is None or place.lock.locked() or place.session is not session:
            continue  # somebody was there after its row was read
        if server_id not in now or (session is not None and session.target != now[server_id]):
            _drop(server_id)


def tools_of(target: Target, cancel: CancelToken) -> list[dict[str, Any]]:
    """What a server offers now.

    Raises:
        Unreachable: it cannot be asked.
        Cancelled: as `cancel` says.
    """

    async def work() -> list[dict[str, Any]]:
        _session, found = await _listing(_place_of(target), target)
        return found

    return loop.ask(work(), settings.WAYMARK_MCP_CONNECT_SECONDS * 3, cancel)


async def using[T](target: Target, work: Callable[["Client", list[dict[str, Any]]], Awaitable[T]]) -> T:
    """Do something with a connection, after a look at what its server offers.

    Raises:
        Unreachable: before `work` was begun; and whatever that raises.
    """
    place = _place_of(target)
    try:
        session, found = await _listing(place, target)
    except Unreachable as error:
        await place.notes.keep(target, str(error), is_refused=isinstance(error, SignInNeeded))
        raise
    assert session.client is not None
    session.users += 1
    try:
        done = await work(session.client, found)
    except Exception as error:
        if is_lost := session.is_lost(error):
            place.lost += 1
            _pause(place, place.lost)
        if is_lost or is_timeout(error):
            said = "The connection was lost during a call." if is_lost else "The server took too long over a call."
            await place.notes.keep(target, said)
        raise
    finally:
        session.used()
    place.lost = 0
    await place.notes.clear(target.server_id)
    return done


def _place_of(target: Target) -> _Place:
    return _places.setdefault(target.server_id, _Place())


def forget(server_id: UUID) -> None:
    """Close the connection of a server that has changed or is gone, once the calls on it are done. Other processes
    notice at its next use, or when they look through theirs."""

    async def work() -> None:
        _drop(server_id)

    loop.submit(work())


def _drop(server_id: UUID) -> None:
    place = _places.pop(server_id, None)
    if place is not None:
        place.is_gone = True
        _close(place)


async def close_all() -> None:
    """Close every connection of this process."""
    sessions = [*_sessions]
    for server_id in [*_places]:
        _drop(server_id)
    _sessions.clear()
    if _sweeper is not None:
        _sweeper.cancel()
    await asyncio.gather(*(session.close() for session in sessions))


def _forget_all() -> None:
    """A forked child has the connections of its parent, but not the loop that they live on."""
    global _sweeper
    _places.clear()
    _sessions.clear()
    _sweeper = None


loop.at_exit(close_all, 5.0)
os.register_at_fork(after_in_child=_forget_all)
