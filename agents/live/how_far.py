"""How far calls are that are under way, for pages that are drawn meanwhile. It may be lost and does not stay."""

from uuid import UUID

import orjson
import redis
from django.conf import settings

from agents.live.stream import redis_client
from tools.base import HowFar

KEPT_SECONDS = 300


def note(action_id: UUID, progress: HowFar) -> None:
    """Never raises."""
    told = orjson.dumps([progress.done, progress.total, progress.words])
    try:
        redis_client().set(_key(action_id), told, ex=KEPT_SECONDS)
    except redis.RedisError:
        return


def of(action_id: UUID) -> HowFar | None:
    """None: it has not said anything, or nobody can tell now."""
    try:
        told = redis_client().get(_key(action_id))
    except redis.RedisError:
        return None
    return HowFar(*orjson.loads(told)) if isinstance(told, bytes) else None


def _key(action_id: UUID) -> str:
    return f"{settings.REDIS_PREFIX}f:{action_id}"
