"""Whether a database connection that lay in its pool still has a server, without asking it."""

from typing import Any

from psycopg import Connection


def check(connection: Connection[Any]) -> None:
    """For a pool's `check`: read what has come, which never waits. From a server that has ended come its last words,
    and then its end.

    Raises:
        psycopg.OperationalError: the connection is broken, take another.
    """
    connection.pgconn.consume_input()
    connection.pgconn.consume_input()
