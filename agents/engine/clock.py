"""What happens by the clock. One scheduler ticks at a time, by an advisory lock; the work itself is done by workers."""

import structlog
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from agents.engine.archiving import ring_for_due

log = structlog.get_logger(__name__)

# Any number that no other advisory lock of ours uses.
TICK_LOCK = 7_301_001


def tick() -> None:
    """Do what is due this minute. Never raises: the next tick tries again."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [TICK_LOCK])
            row = cursor.fetchone()
            if row and row[0]:
                Session.objects.filter(expire_date__lt=timezone.now()).delete()
                ring_for_due()
    except DatabaseError as error:
        log.warning("tick failed", error=str(error))
    finally:
        connection.close()
