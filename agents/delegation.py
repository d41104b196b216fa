"""A sub-agent is sent off; and what becomes of it then: it is resumed, given up, or ended for it."""

from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents.engine.posting import post
from agents.engine.reports import NO_REPORT, report
from agents.models import AgentTask, TaskStatus
from agents.refusals import Refused, queue_full
from agents.services import open_thread, wake
from agents.stopping import cancel_task, stop_run
from memory.marks import mark
from memory.metadata import MessageMetadata
from memory.models import STOPPED, AgentRun, RunStatus, Source, Thread, ThreadMessage, Trigger
from memory.pool import orm_connection
from memory.text import clip
from tools.seen import given_in

# Of a title. Characters.
TITLE_LENGTH = 200


def delegate(
    parent: Thread, title: str, instructions: str, sent_by: UUID, *, report_as_note: bool = False
) -> AgentTask:
    """Send a sub-agent off; its report wakes the parent. Must be called inside the parent's transaction.

    Args:
        sent_by: the run of the parent that does so. Its context type is kept as the task's origin, and no more.
        report_as_note: keep the report as a note of the parent as well.

    Raises:
        Refused: title or instructions are blank, the run was stopped, the user's last message has led to as many
            tasks as it may, or too many runs are queued.
    """
    if not (title := clip(title, TITLE_LENGTH)) or not instructions.strip():
        raise Refused("blank", "The title or the instructions are blank; no task was created.")
    sender = _working(parent, sent_by)
    _check_delegations(parent)
    thread = open_thread(parent.user, AgentTask.kind())
    mark(thread.pk, parent.sources, orm_connection())
    task = AgentTask.objects.create(
        user=parent.user,
        thread=thread,
        parent=parent,
        title=title,
        instructions=instructions,
        sent_by=sender,
        origin_type=sender.context_type,
        report_as_note=report_as_note,
    )
    most = settings.WAYMARK_MAX_QUEUED_PER_USER
    known = MessageMetadata(addresses=given_in(parent.pk, instructions))
    if post(thread, instructions, trigger=Trigger.TASK, metadata=known, most=most, inside=True) is None:
        raise queue_full()
    return task


def _working(parent: Thread, run_id: UUID) -> AgentRun:
    """Lock the run that sends a task off: whoever stops it waits until the task can be called back with it."""
    Thread.objects.select_for_update(no_key=True).get(pk=parent.pk)
    run = AgentRun.objects.select_for_update(no_key=True).get(pk=run_id)
    if run.status in STOPPED:
        raise Refused("stopped", "The user has stopped this run; no task was created.")
    return run


def _check_delegations(parent: Thread) -> None:
    """An agent that answers every report with another task would go on, and cost, for ever."""
    last = ThreadMessage.objects.filter(thread=parent, source=Source.USER).order_by("-position").first()
    since = AgentTask.objects.filter(parent=parent)
    if last is not None:
        since = since.filter(created_at__gte=last.created_at)
    limit = settings.WAYMARK_MAX_TASKS_PER_MESSAGE
    if since.count() >= limit:
        raise Refused("too_many_tasks", f"At most {limit} tasks can follow from one message of the user.")


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


def complete(task: AgentTask, words: str) -> bool:
    """End an active task for which no run is live, with `words` as its report. False: it is not so."""
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=task.thread_id)
        idle = AgentTask.objects.filter(pk=task.pk, status=TaskStatus.ACTIVE, thread__live_run=None)
        if not idle.exists() or not task.settled(RunStatus.SUCCEEDED, words):
            return False
        report(task, task.parent, words)
    return True


def last_words(task: AgentTask) -> str:
    """The last answer of a task, without what it only thought or said beside its tool calls."""
    said = ThreadMessage.objects.filter(thread=task.thread_id, source=Source.AGENT).exclude(content="")
    last = said.exclude(metadata__has_key="interim").order_by("-position").first()
    return last.content if last else NO_REPORT
