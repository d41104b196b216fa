"""How many statements something takes."""

from collections.abc import Callable
from unittest.mock import patch

from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import pool


def queries(work: Callable[[], object]) -> int:
    """Those of the ORM and those of `memory.pool`, of which Django knows nothing."""
    with CaptureQueriesContext(connection) as captured, patch.object(pool, "execute", wraps=pool.execute) as hot:
        work()
    return len(captured) + hot.call_count
