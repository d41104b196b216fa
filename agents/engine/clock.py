"""What happens by the clock. Every worker ticks in a thread of its own; by an advisory lock only one does so at a time,
and whoever comes while another is at it returns at once. What a tick does must be cheap when nothing is due: with many
workers there are many ticks a minute."""

import threading
from collections.abc import Callable
from functools import partial

import structlog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from agents.engine import health, presence
from agents.engine.archiving import ring_for_due
from memory.locks import TICK_LOCK
from tools.sandbox import selftest

log = structlog.get_logger(__name__)


def run(stopped: threading.Event) -> None:
    """Tick until told to stop."""
    while not stopped.is_set():
        tick()
        presence.tell_of_commands(selftest.renew())
        stopped.wait(settings.WAYMARK_TICK_SECONDS)


def tick() -> None:
    """Do what is due this minute. Never raises: the next tick tries again, and what fails keeps nothing else from its
    turn."""
    try:
        _try("alone", _alone)
        for path in settings.WAYMARK_BY_THE_CLOCK:
            _try(path, partial(_by_path, path))
        _try("health", health.run_if_due)
    finally:
        connection.close()


def _by_path(path: str) -> None:
    import_string(path)()


def _try(name: str, work: Callable[[], object]) -> None:
    try:
        work()
    except DatabaseError as error:
        log.warning("tick failed", work=name, error=str(error))
    except Exception:
        log.exception("tick failed", work=name)


def _alone() -> None:
    """What only one at a time does."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [TICK_LOCK])
        row = cursor.fetchone()
        if row and row[0]:
            Session.objects.filter(expire_date__lt=timezone.now()).delete()
            ring_for_due()
