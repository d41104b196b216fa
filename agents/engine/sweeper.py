"""Finds runs that nobody works on although they are due, and rings for them. Every worker does it every few seconds."""

import contextlib

import structlog
from django.conf import settings
from redis import RedisError

from agents import decisions
from agents.engine import bell, journal, payment
from agents.live.stream import redis_client
from memory.pool import orm

log = structlog.get_logger(__name__)

# A queued run whose bell was not heard for this long is rung again. Seconds.
BELL_GRACE = 10.0


def sweep() -> int:
    """Ring for every lost run, and close approvals that have expired; returns how many runs that were.

    Ringing twice is harmless: only one claim succeeds.
    """
    rung = _ring_for_lost()
    with orm():
        decisions.expire_due()
        payment.sweep()
    return rung


def _ring_for_lost() -> int:
    lost = journal.lost_runs(BELL_GRACE)
    for run_id in lost:
        if not bell.ring(run_id):
            break  # each further try would wait for Redis as long again
    if lost:
        log.info("rang for lost runs", count=len(lost))
        _count(len(lost))
    return len(lost)


def rung_so_far() -> int:
    """How many lost runs were rung for since Redis was started.

    Raises:
        RedisError: Redis is away.
    """
    return int(redis_client().get(_key()) or 0)


def _count(rung: int) -> None:
    with contextlib.suppress(RedisError):
        redis_client().incrby(_key(), rung)


def _key() -> str:
    return f"{settings.REDIS_PREFIX}lost-runs-rung"
