"""What a thread's row says of its messages and its run, and whether somebody will answer."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from agents import services
from agents.engine.health.finding import Finding
from memory.models import LIVE, AgentRun, Source, Thread, ThreadMessage, Trigger

WAITING = ThreadMessage.objects.filter(thread=OuterRef("pk"), processed=False).order_by()

TRUTH = Thread.objects.annotate(
    waiting=Coalesce(Subquery(WAITING.values("thread").annotate(n=Count("pk")).values("n")), 0),
    live=Subquery(AgentRun.objects.filter(thread=OuterRef("pk"), status__in=LIVE).values("pk")[:1]),
)


def wrong_counters(limit: int) -> list[Finding]:
    """Threads that count other messages than wait, or name another run than the live one. One statement sees one
    moment, and every write of the engine changes rows and counters together."""
    none, other = Q(live_run=None), Q(live_run__isnull=False, live__isnull=False) & ~Q(live_run=F("live"))
    one_has_none = none & Q(live__isnull=False) | ~none & Q(live=None)
    found = TRUTH.filter(~Q(pending=F("waiting")) | one_has_none | other)
    return [
        Finding(f"thread {thread.pk}", partial(_recount, thread.pk)) for thread in found.order_by("created_at")[:limit]
    ]


def _recount(thread_id: UUID) -> bool:
    """Locked first and counted then: what is counted in the locking statement may be older than the lock."""
    with transaction.atomic():
        if not Thread.objects.select_for_update(no_key=True).filter(pk=thread_id).exists():
            return False
        told = TRUTH.values_list("pending", "live_run", "waiting", "live")
        pending, live_run, waiting, live = told.get(pk=thread_id)
        if (pending, live_run) == (waiting, live):
            return False
        Thread.objects.filter(pk=thread_id).update(pending=waiting, live_run=live)
    return True


def unanswered(limit: int) -> list[Finding]:
    """Messages that wait although no run is live: somebody forgot to wake the agent. Where an error came after them,
    the user was told and decides."""
    told = ThreadMessage.objects.filter(
        thread=OuterRef("thread"), source=Source.ERROR, position__gt=OuterRef("position")
    )
    live = AgentRun.objects.filter(thread=OuterRef("pk"), status__in=LIVE)
    quiet = Thread.objects.filter(Exists(WAITING.filter(~Exists(told))), ~Exists(live), live_run=None)
    return [Finding(f"thread {thread.pk}", partial(_wake, thread)) for thread in quiet.order_by("created_at")[:limit]]


def _wake(thread: Thread) -> bool:
    services.wake(thread, Trigger.MESSAGE)
    return True
