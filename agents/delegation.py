"""What becomes of a sub-agent after it was sent off: it is resumed, given up, or ended for it."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents.engine.reports import NO_REPORT, report
from agents.models import AgentTask, TaskStatus
from agents.services import cancel_task, stop_run, wake
from memory.models import AgentRun, Source, Thread, ThreadMessage, Trigger


def resume(task: AgentTask) -> bool:
    """Let a paused task go on, on its history as it is. False: it is not paused any more."""
    paused = AgentTask.objects.filter(pk=task.pk, status=TaskStatus.PAUSED)
    if not paused.update(status=TaskStatus.ACTIVE, paused_at=None, resume_at=None):
        return False
    wake(task.thread, Trigger.RETRY)
    return True


def expire(task: AgentTask, words: str) -> bool:
    """Cancel a task that was paused for too long, for the reason in `words`. Its parent was woken when it was paused.
    False: it is not paused any more."""
    if not cancel_task(task, (TaskStatus.PAUSED,), words):
        return False
    for run in AgentRun.objects.live().filter(thread=task.thread_id).select_related("thread"):
        stop_run(run)
    return True


def remind(task: AgentTask) -> bool:
    """Tell the user, and wake the agent that sent it off, that an active task has not reported for long (mission A10).
    False: it has, or they were told already."""
    minutes = settings.WAYMARK_TASK_WAIT_MINUTES
    words = f"No report after {minutes:g} minutes. The task is still under way and reports when it is done."
    with transaction.atomic():
        silent = AgentTask.objects.filter(pk=task.pk, status=TaskStatus.ACTIVE, overdue_at=None)
        if not silent.update(overdue_at=timezone.now()):
            return False
        report(task, task.parent, words)
    return True


def complete(task: AgentTask) -> bool:
    """End an active task for which no run is live, with its last words as its report. False: it is not so."""
    with transaction.atomic():
        thread = Thread.objects.select_for_update(no_key=True).get(pk=task.thread_id)
        words = _last_words(thread) or NO_REPORT
        idle = AgentTask.objects.filter(pk=task.pk, status=TaskStatus.ACTIVE, thread__live_run=None)
        if not idle.update(status=TaskStatus.COMPLETED, result=words):
            return False
        report(task, task.parent, words)
    return True


def _last_words(thread: Thread) -> str:
    said = ThreadMessage.objects.filter(thread=thread).exclude(source=Source.USER).exclude(content="")
    last = said.order_by("-position").first()
    return last.content if last else ""
