"""Whether the parts that nothing works without are there and work gets done. Every question has a short time limit: a
server that hangs is as good as none, and whoever asks must not hang with it."""

import contextlib
import select
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import psycopg
import redis
from django.conf import settings
from django.db import connections
from django.db.models import Case, Count, F, Min, When
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.module_loading import import_string
from redis.backoff import NoBackoff
from redis.retry import Retry

from agents.engine import presence
from agents.models import HealthReport, ModelConnection
from memory import disk
from memory.models import AgentRun, RunStatus
from memory.pool import OF_DJANGO
from memory.secrets import opens
from tools.mcp.models import McpServer, McpSignIn

# For a server to answer. Seconds.
PATIENCE = 2
# A worker that gave no sign for so long is not there, and a run that nobody takes for so long is too late. Seconds.
SEEN_SECONDS = 60
LATE_SECONDS = 30
# So many of its pauses without a report, and the health monitor does not look.
MISSED = 3


class Part(NamedTuple):
    name: str
    well: bool
    text: str


def parts() -> list[Part]:
    """What is vital, each with how it is. Without a database the rest of what it would tell is left out."""
    trouble = database_trouble()
    told = [
        Part("Database", not trouble, f"does not answer: {trouble}" if trouble else "answers"),
        *_disks(),
        *_redis(),
    ]
    if trouble:
        return told
    more = chain.from_iterable(import_string(path)() for path in settings.WAYMARK_VITALS)
    return [*told, _queue(), _monitor(), *_secrets(), *more]


def database_trouble() -> str:
    """Why PostgreSQL does not take a new connection and a question, in its words or the driver's; empty when it does.
    Connections of the pools would wait for it."""
    wanted = connections["default"].get_connection_params()
    parameters = {key: value for key, value in wanted.items() if key not in OF_DJANGO}
    try:
        with contextlib.closing(psycopg.connect(**parameters | {"connect_timeout": PATIENCE})) as connection:
            connection.pgconn.send_query(b"SELECT 1")
            return "" if select.select([connection], [], [], PATIENCE)[0] else f"nothing came within {PATIENCE} s"
    except psycopg.Error as error:
        return str(error).strip()


def workers() -> int | None:
    """How many workers gave a sign in the last minute; None when Redis does not answer."""
    try:
        return presence.workers_alive(SEEN_SECONDS, _impatient_redis())
    except redis.RedisError:
        return None


def disks() -> Iterator[tuple[Path, int]]:
    """The folders that Waymark writes to, one a disk, with the bytes that are free. That of a database elsewhere cannot
    be seen from here."""
    seen = set()
    for folder in (settings.DATA_DIR / "pg", settings.DATA_DIR, settings.WAYMARK_WORKSPACES):
        with contextlib.suppress(OSError):
            device = folder.stat().st_dev
            if device not in seen:
                seen.add(device)
                yield folder, disk.free(folder)


def _disks() -> Iterator[Part]:
    for folder, free in disks():
        is_well = free >= settings.WAYMARK_DISK_LOW
        more = "" if is_well else ": make room before it is full"
        yield Part("Disk", is_well, f"{filesizeformat(free)} free at {folder}{more}")


def _redis() -> list[Part]:
    seen = workers()
    if seen is None:
        return [Part("Redis", False, "does not answer: pages are not live, workers are not woken")]
    return [Part("Redis", True, "answers"), Part("Worker", seen > 0, f"{seen or 'none'} seen in the last minute")]


def late_seconds() -> float:
    """For how long the oldest run waits that could be taken: not one of who has as many at work as may be. A run that
    was at work before waits since its last wait was over."""
    held = AgentRun.objects.filter(status__in=(RunStatus.RUNNING, RunStatus.CANCELLING), lease_until__gt=Now())
    busy = held.order_by().values("thread__user").annotate(runs=Count("pk"))
    full = busy.filter(runs__gte=settings.WAYMARK_MAX_RUNNING_PER_USER or 1 << 31).values("thread__user")
    since = Case(When(started_at=None, then=F("created_at")), default=F("due_at"))
    queued = AgentRun.objects.filter(status=RunStatus.QUEUED).order_by().exclude(thread__user__in=full)
    oldest = queued.aggregate(oldest=Min(since))["oldest"]
    return max((timezone.now() - oldest).total_seconds(), 0) if oldest else 0


def _queue() -> Part:
    """Counted in the database, which decides; Redis only rings."""
    waiting, live = AgentRun.objects.filter(status=RunStatus.QUEUED).count(), AgentRun.objects.live().count()
    seconds = late_seconds()
    text = f"{waiting} waiting, the oldest for {seconds:.0f} s" if waiting else f"empty, {live} at work"
    return Part("Queue", seconds < LATE_SECONDS, text)


def _monitor() -> Part:
    last = HealthReport.objects.filter(by_hand=False).order_by("-at").values_list("at", flat=True).first()
    if last is None:
        return Part("Health monitor", True, "has not looked yet")
    age = timezone.now() - last
    is_well = age <= timedelta(minutes=MISSED * settings.WAYMARK_HEALTH_MINUTES)
    return Part("Health monitor", is_well, f"looked {age.total_seconds() / 60:.0f} min ago")


def _secrets() -> list[Part]:
    """Nothing is told of keys while each secret opens: most will never lose them."""
    kept = (
        ModelConnection.objects.values_list("sealed_key", flat=True),
        McpServer.objects.values_list("sealed_headers", flat=True),
        McpSignIn.objects.values_list("sealed_tokens", flat=True),
    )
    lost = sum(not opens(sealed) for column in kept for sealed in column.iterator())
    return [Part("Keys", False, f"no line of field_keys opens {lost} of the stored secrets")] if lost else []


@cache
def _impatient_redis() -> redis.Redis:
    limits = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
    return redis.Redis.from_url(settings.REDIS_URL, retry=Retry(NoBackoff(), 0), **limits)
