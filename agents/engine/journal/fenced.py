"""Durable points in the middle of a run, each exactly once."""

from functools import partial
from typing import Any

from psycopg import Connection

from agents.engine.journal.fragments import execute, fence_of
from agents.engine.journal.rows import Lease, LeaseLost, Pulse
from agents.engine.journal.surely import LOCK_RUN, looked_up, surely
from memory.pool import Row

LANDED = """
SELECT run.status = 'cancelling', t.pending > 0, run.metered, {condition}
FROM memory_agentrun run JOIN memory_thread t ON t.id = run.thread_id
WHERE run.id = %(run)s AND run.lease_token = %(token)s
"""


def fenced(
    sql: str, lease: Lease, parameters: dict[str, object], condition: str, on: Connection[Any] | None = None
) -> Pulse:
    """Execute a durable point exactly once, even when the connection is lost at its commit.

    Args:
        condition: is true as soon as the statement has been committed: a row by its known id.

    Raises:
        LeaseLost: the run is not ours.
        psycopg.OperationalError: the database stays away; or, with `on`, its transaction is over.
    """
    parameters = fence_of(lease) | parameters
    if on is not None:
        return _pulse(execute(sql, parameters, on))
    return surely(lambda: _pulse(execute(sql, parameters, None)), partial(landed, lease, condition, parameters))


def landed(lease: Lease, condition: str, parameters: dict[str, object]) -> Pulse | None:
    """How the run stands now if a statement whose transaction's end was lost has been committed. None: it was not."""
    sql = LANDED.format(condition=condition)
    *pulse, has_landed = _found(looked_up(LOCK_RUN, sql, fence_of(lease) | parameters))
    return Pulse(*pulse) if has_landed else None


def _pulse(rows: list[Row]) -> Pulse:
    return Pulse(*_found(rows))


def _found(rows: list[Row] | None) -> Row:
    if not rows:
        raise LeaseLost
    return rows[0]
