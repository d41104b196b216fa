"""Whether a database connection that lay in its pool still has a server, without asking it."""

import selectors
from typing import Any

from psycopg import Connection, OperationalError


def check(connection: Connection[Any]) -> None:
    """For a pool's `check`: a server that has ended has closed its socket; who is idle has nothing else to read.

    Raises:
        psycopg.OperationalError: take another connection.
    """
    with selectors.DefaultSelector() as looked_at:
        looked_at.register(connection.fileno(), selectors.EVENT_READ)
        if looked_at.select(0):
            connection.close()  # or the pool would take it back
            raise OperationalError("the server has closed the connection")
