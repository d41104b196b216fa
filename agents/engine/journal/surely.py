"""What is done when the connection is lost at a commit: nobody knows then whether it was committed, so it is looked up
before it is tried again."""

import time
from collections.abc import Callable, Mapping, Sequence

from agents.engine.journal.fragments import execute
from agents.engine.journal.rows import Lease
from memory.pool import DATABASE_AWAY, Row, shortage

# How often, and after which pauses, a statement is tried again whose connection was lost. Seconds.
PAUSES = (0.1, 0.5, 1.5)


def surely[T](attempt: Callable[[], T], landed: Callable[[], T | None], pauses: Sequence[float] = PAUSES) -> T:
    """Do something exactly once, even when the connection is lost at its commit.

    Args:
        attempt: one transaction.
        landed: what it came to, when it was committed; None when it was not.

    Raises:
        psycopg.OperationalError, django.db.OperationalError, django.db.InterfaceError: the database stays away, or is
            short of something (`memory.pool.shortage`).
    """
    try:
        return attempt()
    except DATABASE_AWAY as error:
        if shortage(error):  # it was refused, which leaves no doubt, and another try so soon finds no more room
            raise
        lost = error
    for pause in pauses:
        time.sleep(pause)
        try:
            found = landed()
            return attempt() if found is None else found
        except DATABASE_AWAY as error:
            lost = error
    raise lost


# They wait for the lost statement, which holds the row as long as it is still at work on the server. Only a statement
# that begins after it has ended sees what it did, so each of these is of its own. Whatever changes a thread holds it.
LOCK_RUN = "SELECT 1 FROM memory_agentrun WHERE id = %(run)s FOR NO KEY UPDATE"
LOCK_THREAD = "SELECT 1 FROM memory_thread WHERE id = %(thread)s FOR NO KEY UPDATE"
LOCK_THREAD_OF_RUN = """
SELECT 1 FROM memory_thread t JOIN memory_agentrun r ON r.thread_id = t.id WHERE r.id = %(run)s FOR NO KEY UPDATE OF t
"""

# The run was let go of by us, and nobody has claimed it since.
LET_GO = "run.id = %(run)s AND run.fence = %(fence)s AND run.lease_token IS NULL"


def let_go_by(lease: Lease) -> dict[str, object]:
    """The parameters of LET_GO, of the thread's lock and of NEXT_IN_LINE."""
    return {"run": lease.run_id, "fence": lease.fence, "thread": lease.thread_id, "user": lease.user_id}


def looked_up(lock: str, sql: str, parameters: Mapping[str, object]) -> list[Row] | None:
    """The rows of a look-up; None when there are none."""
    execute(lock, parameters, None)
    return execute(sql, parameters, None) or None
