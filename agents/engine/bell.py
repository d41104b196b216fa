"""The doorbell: tells the workers that a run waits. PostgreSQL is the truth; the sweeper repeats a lost ring."""

import os
from functools import cache
from uuid import UUID

import django_rq
import structlog
from redis import RedisError
from rq import Queue

log = structlog.get_logger(__name__)


def ring(run_id: UUID) -> bool:
    """Enqueue a run, after its commit. Never raises; False without Redis: the sweeper then finds the run."""
    queue = _queue(os.getpid())
    try:
        with queue.connection.pipeline() as together:  # one way there and back instead of two
            queue.enqueue("agents.engine.jobs.run", str(run_id), result_ttl=0, description="run", pipeline=together)
            together.execute()
    except RedisError as error:
        log.warning("doorbell failed", run=str(run_id), error=str(error))
        return False
    return True


@cache
def _queue(_process: int) -> Queue:
    """Kept: django_rq.get_queue costs four times the enqueue itself. One a process: forks must not share."""
    return django_rq.get_queue("default")
