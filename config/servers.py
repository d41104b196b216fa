"""How PostgreSQL and Redis are spoken to. Every time-out is set: a dead link must be noticed, not waited for."""

from collections.abc import Mapping
from typing import Any

from redis.backoff import NoBackoff
from redis.retry import Retry

from memory.alive import check

# A dead Redis must be noticed at once, by whoever rings as by the worker that waits for a ring.
REDIS_OPTIONS = {
    "max_connections": 50,
    "socket_connect_timeout": 2,
    "socket_timeout": 5,
    "retry": Retry(NoBackoff(), 0),
}


def database(address: Mapping[str, Any], connections: int) -> dict[str, Any]:
    """Django's settings of a database.

    Args:
        address: as `env.db_url` reads it; its own options stay.
        connections: how many the ORM may have open in each process.
    """
    return {
        **address,
        "DISABLE_SERVER_SIDE_CURSORS": False,
        "OPTIONS": {
            **address.get("OPTIONS", {}),
            "connect_timeout": 5,
            "tcp_user_timeout": 15_000,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 2,
            "options": "-c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000",
            "pool": {"min_size": 0, "max_size": connections, "timeout": 20, "max_idle": 120, "check": check},
        },
    }
