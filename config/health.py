"""Whether this process lives, and whether the whole is ready for work."""

import redis
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from agents.engine.presence import worker_seen
from agents.live.stream import redis_client


def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers; touches nothing else."""
    return HttpResponse("ok", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, Redis and a worker (seen in the last minute) are there, else 503; says which is missing."""
    parts = {"database": _database(), "redis": _redis(), "worker": worker_seen(seconds=60)}
    return JsonResponse(parts, status=200 if all(parts.values()) else 503)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _redis() -> bool:
    try:
        return bool(redis_client().ping())
    except redis.RedisError:
        return False
