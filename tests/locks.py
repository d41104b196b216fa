"""Who waits for a lock of the database."""

from memory import pool

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def waiting() -> int:
    """How many sessions do."""
    number: int = pool.execute(WAITS, {})[0][0]
    return number
