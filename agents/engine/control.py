"""Stop requests on their way to whichever worker holds the run. The row (`cancelling`) is the truth, this is speed."""

import os
import threading
import time
from uuid import UUID

import structlog
from django.conf import settings
from redis import Redis, RedisError

from agents.engine.leases import leases
from agents.live.stream import redis_client

log = structlog.get_logger(__name__)


def request_stop(run_id: UUID) -> None:
    """Tell all workers. Never raises: without Redis the next renewal of the lease brings the stop."""
    try:
        redis_client().publish(_channel(), str(run_id))
    except RedisError as error:
        log.warning("stop request not sent", run=str(run_id), error=str(error))


def listen() -> None:
    """Start the listener of a worker process."""
    threading.Thread(target=_listen, daemon=True, name=f"stops-{os.getpid()}").start()


def _listen() -> None:
    while True:
        try:
            # No read time-out: the channel may be silent for days; a broken link is noticed by keepalive, which a unix
            # socket neither has nor needs.
            keepalive = {} if settings.REDIS_URL.startswith("unix:") else {"socket_keepalive": True}
            client = Redis.from_url(settings.REDIS_URL, socket_timeout=None, **keepalive)
            with client.pubsub(ignore_subscribe_messages=True) as channel:  # type: ignore[no-untyped-call]
                channel.subscribe(_channel())
                for message in channel.listen():
                    leases.stop(UUID(message["data"].decode()))
        except Exception as error:  # noqa: BLE001 (this thread must outlive whatever Redis does)
            log.warning("stop listener interrupted", error=str(error))
            time.sleep(1)


def _channel() -> str:
    return f"{settings.REDIS_PREFIX}stop"
