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
    return _enqueue("run", str(run_id))


def ask_for_check(action_id: UUID, user_id: int) -> bool:
    """Let a worker look up what became of a call. Never raises; False without Redis."""
    return _enqueue("check", str(action_id), user_id)


def _enqueue(job: str, *arguments: object) -> bool:
    try:
        _queue(os.getpid()).enqueue(f"agents.engine.jobs.{job}", *arguments, result_ttl=0, description=job)
    except RedisError as error:
        log.warning("doorbell failed", job=job, arguments=arguments, error=str(error))
        return False
    return True


@cache
def _queue(_process: int) -> Queue:
    """Kept: django_rq.get_queue costs four times the enqueue itself. One a process: forks must not share."""
    return django_rq.get_queue("default")
