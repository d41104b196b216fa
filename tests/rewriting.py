"""Making the past: what the database lets nobody do to the record of what agents did (tools/migrations/0005)."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction


@contextlib.contextmanager
def rewriting() -> Iterator[None]:
    """What is written within is not looked at by triggers; foreign keys are not either."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = origin")
