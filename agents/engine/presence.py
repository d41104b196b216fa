"""Which workers are alive, as far as Redis knows."""

import json
import os
import socket
import time
from contextlib import suppress

from django.conf import settings
from redis import Redis, RedisError

from agents.live.stream import redis_client

KEPT_SECONDS = 600


def mark_alive() -> None:
    """Say that this worker lives; called every few seconds."""
    client = redis_client()
    client.zadd(_key(), {f"{socket.gethostname()}:{os.getpid()}": time.time()})
    client.zremrangebyscore(_key(), 0, time.time() - KEPT_SECONDS)


def mark_gone() -> None:
    redis_client().zrem(_key(), f"{socket.gethostname()}:{os.getpid()}")


def workers_alive(seconds: float, client: Redis | None = None) -> int:
    """How many workers were alive within the last `seconds`.

    Args:
        client: through which to ask; by default this process's.

    Raises:
        RedisError: Redis is away.
    """
    return int((client or redis_client()).zcount(_key(), time.time() - seconds, "+inf"))


def tell_of_commands(withheld: str) -> None:
    """Say whether this worker runs commands; called every minute.

    Args:
        withheld: why not; empty when it does.
    """
    with suppress(RedisError):
        told = json.dumps([time.time(), withheld])
        redis_client().hset(_commands_key(), f"{socket.gethostname()}:{os.getpid()}", told)
        redis_client().expire(_commands_key(), KEPT_SECONDS)


def commands_withheld() -> list[str]:
    """Why workers that are alive run no commands, each reason once.

    Raises:
        RedisError: Redis is away.
    """
    told = [json.loads(each) for each in redis_client().hvals(_commands_key())]
    return sorted({why for at, why in told if why and at > time.time() - 2 * settings.WAYMARK_TICK_SECONDS - 60})


def _key() -> str:
    return f"{settings.REDIS_PREFIX}workers"


def _commands_key() -> str:
    return f"{settings.REDIS_PREFIX}commands"
