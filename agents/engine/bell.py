"""The doorbell: tells the workers that a run waits. PostgreSQL is the truth; the sweeper repeats a lost ring."""

import os
from functools import cache
from uuid import UUID

import django_rq
import structlog
from django.conf import settings
from redis import RedisError
from rq import Queue

from agents.live.announce import announce_status
from memory.models import RunStatus, Thread

log = structlog.get_logger(__name__)

JOBS = "agents.engine.jobs"
RUN = f"{JOBS}.run"


def announce_and_ring(thread: Thread, run_id: UUID, step: int = 0) -> None:
    """A run was queued: whoever looks on sees it, and a worker is rung for. After its commit."""
    announce_status(thread, run_id, RunStatus.QUEUED, step)
    ring(run_id)


def ring_next(in_line: UUID | None) -> None:
    """A run has let go of its slot, which may be what the oldest queued run of its user waits for; harmless when it is
    not."""
    if in_line is not None and settings.WAYMARK_MAX_RUNNING_PER_USER:
        ring(in_line)


def ring(run_id: UUID) -> bool:
    """Enqueue a run, after its commit. Never raises; False without Redis: the sweeper then finds the run."""
    return _ring("run", str(run_id))


def ring_archive(thread_id: UUID, user_id: int, reason: str) -> bool:
    """Have a session archived. Like `ring`; the clock finds what nobody heard."""
    return _ring("archive", str(thread_id), reason, user=user_id)


def ring_measure(thread_id: UUID, user_id: int) -> bool:
    """Have a session archived if it has grown too long. Like `ring`; the next run rings again."""
    return _ring("measure", str(thread_id), user=user_id)


def ask_for_check(action_id: UUID, user_id: int, *, asked: bool = True) -> bool:
    """Let a worker look up what became of a call. Never raises; False without Redis.

    Args:
        asked: by its user.
    """
    return _ring("check", str(action_id), user_id if asked else None, user=user_id)


def ask_for_restart(run_id: UUID, user_id: int) -> bool:
    """Let a worker archive the session that a model refused, and go on. Never raises; False without Redis."""
    return _ring("restart", str(run_id), user=user_id)


def _ring(job: str, *arguments: object, user: int | None = None) -> bool:
    """`user`: whose errand it is, see `engine.errands`; runs have slots of their own."""
    queue = _queue(os.getpid())
    try:
        with queue.connection.pipeline() as together:  # one way there and back instead of two
            meta = {"user": user} if user else None
            queue.enqueue(f"{JOBS}.{job}", *arguments, result_ttl=0, description=job, meta=meta, pipeline=together)
            together.execute()
    except RedisError as error:
        log.warning("doorbell failed", job=job, arguments=arguments, error=str(error))
        return False
    return True


@cache
def _queue(_process: int) -> Queue:
    """Kept: django_rq.get_queue costs four times the enqueue itself. One a process: forks must not share.

    `auto`: at once, also inside a transaction of somebody else; django-rq would wait for its end, when our pipeline has
    long been sent. Whoever rings has committed what it rings for.
    """
    return django_rq.get_queue("default", commit_mode="auto")
