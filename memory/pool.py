"""The connections of the hot path.

Durable points are single autocommit statements on prepared connections; through the ORM's connection the same
statements take about half as long again (docs/performance.md). Borrow per statement, hold nothing while waiting.
"""

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import psycopg
from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connections
from psycopg import Connection, Cursor
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import ConnectionPool

from memory.encoding import dumps

# All these statements find their rows by key, so one plan is as good as another and is made once. Times are in UTC, as
# the ORM has them: Python takes a local time in a fold of its zone for equal to none of another zone.
OPTIONS = "-c plan_cache_mode=force_generic_plan -c TimeZone=UTC"

type Row = tuple[Any, ...]

# The database went away, by the hot path or by the ORM: a commit may or may not have happened.
DATABASE_AWAY = (psycopg.OperationalError, OperationalError, InterfaceError)

# The class of a server's last words. They may come a moment before the end of the connection, which then looks well.
SHUTS_DOWN = "57P"

# Of a transaction in which nothing came for a minute: the process was frozen, or its machine slept.
STOOD_STILL = "25P03"

# What the server itself has too little of (class 53), in words for people: it answers, and waiting helps once somebody
# has made room.
SHORT_OF = {
    "53100": "The disk of the database is full.",
    "53200": "The database has no memory left.",
    "53300": "All connections of the database are taken.",
}

# What Django adds to the parameters of a connection for its own use.
OF_DJANGO = frozenset({"context", "cursor_factory", "pool", "prepare_threshold"})

_lock = threading.Lock()
_pool: ConnectionPool[Connection[TupleRow]] | None = None


def execute(sql: str, parameters: Mapping[str, object]) -> list[Row]:
    """Run one statement in its own transaction and return its rows.

    Raises:
        psycopg.Error: the statement failed or its outcome is unknown. When its connection is lost the others mostly
            are as well: the next statement gets a new one.
    """
    with _borrowed() as connection:
        cursor = connection.execute(sql.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def transaction() -> Iterator[Connection[TupleRow]]:
    """A transaction of several statements (`execute_on`). Errors are as `execute` and `standing_still_is_away` have
    them."""
    with standing_still_is_away(), _borrowed() as connection, connection.transaction():
        yield connection


@contextlib.contextmanager
def _borrowed() -> Iterator[Connection[TupleRow]]:
    hot = _open_pool()
    with hot.connection() as connection:
        try:
            yield connection
        except psycopg.OperationalError as error:
            if connection.broken or (error.sqlstate or "").startswith(SHUTS_DOWN):
                hot.drain()
            raise


def execute_on(connection: Connection[Any], sql: str, parameters: Mapping[str, object]) -> list[Row]:
    """Run one statement on a given connection, for callers that have a transaction open.

    Django's own cursors write the parameters into the text, which PostgreSQL must then parse and plan each time.
    """
    before, connection.prepare_threshold = connection.prepare_threshold, 0
    try:
        cursor = Cursor(connection).execute(sql.encode(), parameters)
        return cursor.fetchall() if cursor.description else []
    finally:
        connection.prepare_threshold = before


@contextlib.contextmanager
def orm() -> Iterator[None]:
    """Use the ORM in a worker's thread and give its connection back to Django's pool at once: a run must hold no
    connection while it waits for a model. Errors are as `standing_still_is_away` has them."""
    try:
        with standing_still_is_away():
            yield
    finally:
        connections["default"].close()


@contextlib.contextmanager
def standing_still_is_away() -> Iterator[None]:
    """Let a transaction that PostgreSQL has ended, because this process stood still in it, be what it is: a lost
    connection.

    Raises:
        OperationalError: for the internal error that it is otherwise.
    """
    try:
        yield
    except (psycopg.InternalError, InternalError) as error:
        if _sqlstate(error) == STOOD_STILL:
            raise OperationalError(str(error)) from error
        raise


def shortage(error: Exception) -> str:
    """What the database is short of, as a sentence, when that is why a statement failed; else empty."""
    return SHORT_OF.get(_sqlstate(error), "")


def _sqlstate(error: Exception) -> str:
    """Django's errors have PostgreSQL's as their cause."""
    return getattr(error.__cause__ or error, "sqlstate", None) or ""


def orm_connection() -> Connection[Any]:
    """The ORM's own connection, for hot statements that belong into its open transaction."""
    connections["default"].ensure_connection()
    raw = connections["default"].connection
    assert isinstance(raw, Connection)
    return raw


def close() -> None:
    """Close every connection, at the end of the process or before its database is dropped."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is not None:
        pool.close(timeout=2)


def _open_pool() -> ConnectionPool[Connection[TupleRow]]:
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = _make()
    return _pool


def _make() -> ConnectionPool[Connection[TupleRow]]:
    parameters = connections["default"].get_connection_params()
    return ConnectionPool(
        kwargs={key: value for key, value in parameters.items() if key not in OF_DJANGO}
        | {"autocommit": True, "prepare_threshold": 0, "options": f"{parameters.get('options', '')} {OPTIONS}"},
        min_size=1,
        max_size=settings.WAYMARK_HOT_POOL,
        timeout=20,
        configure=_configure,
        open=True,
        name="hot",
    )


def _configure(connection: Connection[TupleRow]) -> None:
    set_json_dumps(dumps, connection)
    set_json_loads(orjson.loads, connection)


def _forget() -> None:
    """A forked child must not share its parent's sockets; it opens its own."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
# A pool that is left open makes the end of a command wait for its threads.
atexit.register(close)
