"""Sub-agents that wait, that nobody works on any more, or that nobody will ask for."""

from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents import delegation
from agents.engine import journal
from agents.engine.health.finding import Finding
from agents.engine.health.runs import abandon
from agents.engine.health.watch import watched_for
from agents.models import AgentTask, TaskStatus
from agents.stopping import delete_thread
from memory.models import LIVE, AgentRun

LIVE_RUN = Exists(AgentRun.objects.filter(thread=OuterRef("thread"), status__in=LIVE))


def ready_tasks(limit: int) -> list[Finding]:
    """Paused tasks whose time to try again has come."""
    paused = AgentTask.objects.filter(status=TaskStatus.PAUSED)
    ready = paused.filter(resume_at__lte=timezone.now()).order_by("resume_at")[:limit]
    return [Finding(f"task {task.pk}", partial(delegation.resume, task)) for task in ready]


def expired_tasks(limit: int) -> list[Finding]:
    """Tasks that were paused for too long are cancelled; a live run that waits to try again is stopped."""
    hours = settings.WAYMARK_TASK_PAUSE_HOURS
    longest = timezone.now() - timedelta(hours=hours)
    old = Q(paused_at__lt=longest) | Q(paused_at=None, created_at__lt=longest)
    found = AgentTask.objects.filter(old, status=TaskStatus.PAUSED).order_by("created_at")[:limit]
    words = f"Given up: the task was paused for more than {hours:g} hours."
    return [Finding(f"task {task.pk}", partial(delegation.expire, task, words)) for task in found]


def overdue_tasks(limit: int) -> list[Finding]:
    """Active tasks that have not reported for long: user and parent are told once."""
    longest = timezone.now() - timedelta(minutes=settings.WAYMARK_TASK_WAIT_MINUTES)
    silent = AgentTask.objects.filter(status=TaskStatus.ACTIVE, overdue_at=None, created_at__lt=longest)
    found = silent.select_related("parent").order_by("created_at")[:limit]
    return [Finding(f"task {task.pk}", partial(delegation.remind, task)) for task in found]


def stale_tasks(limit: int) -> list[Finding]:
    """Active tasks on which nobody works: completed with what they came to, and reported."""
    silence = settings.WAYMARK_STALE_TASK_HOURS * 3600
    watched = watched_for(silence)
    stale = [odd.run_id for odd in journal.stale_runs_of(AgentTask.kind(), silence, limit)] if watched else []
    begun = timezone.now() - timedelta(seconds=silence)
    idle = ~LIVE_RUN & ~Exists(AgentRun.objects.filter(thread=OuterRef("thread"), finished_at__gt=begun))
    found = (
        AgentTask.objects.filter(Q(thread__live_run__in=stale) | Q(idle), status=TaskStatus.ACTIVE)
        .filter(created_at__lt=begun)
        .select_related("thread")
        .order_by("created_at")[:limit]
    )
    return [Finding(f"task {task.pk}", partial(_complete, task, silence)) for task in found]


def _complete(task: AgentTask, silence: float) -> bool:
    words = delegation.last_words(task)
    if task.thread.live_run and not abandon(task.thread.live_run, silence):
        return False
    return delegation.complete(task, words)


def old_tasks(limit: int) -> list[Finding]:
    """Tasks that are over for long are deleted with all that hangs on them; their reports stay with the parent."""
    over = AgentTask.objects.filter(~LIVE_RUN, status__in=(TaskStatus.COMPLETED, TaskStatus.CANCELLED))
    since = Coalesce(Max("thread__runs__finished_at"), "created_at")
    limit_date = timezone.now() - timedelta(days=settings.WAYMARK_TASK_KEPT_DAYS)
    old = over.annotate(since=since).filter(since__lt=limit_date).select_related("thread").order_by("since")[:limit]
    return [Finding(f"task {task.pk}", partial(_delete, task)) for task in old]


def _delete(task: AgentTask) -> bool:
    delete_thread(task.thread)
    return True
