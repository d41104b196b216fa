"""Whether a database connection that lay in its pool still has a server, without asking it."""

from typing import Any

import psycopg
from django.db import connections
from psycopg import Connection


def check(connection: Connection[Any]) -> None:
    """For the `check` of the ORM's pool: read what has come, which never waits. From a server that has ended come its
    last words, and then its end. The others in the pool have then lost theirs as well, and it would look at one after
    the other, with pauses that double: so all of them are made anew.

    Raises:
        psycopg.OperationalError: the connection is broken, take another.
    """
    try:
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        pooled: Any = connections["default"]
        pooled.pool.drain()
        raise
