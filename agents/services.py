"""Every write to agents that a face may ask for: one transaction, its record, and the push after commit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import psycopg.errors
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agents.decisions import withdraw
from agents.engine import bell, journal
from agents.engine.control import request_stop
from agents.live.announce import announce_run, posted, status_changed
from agents.live.stream import publish
from agents.models import AgentTask, TaskStatus, UserAgent
from agents.refused import Refused as Refused
from memory.ids import new_id
from memory.metadata import MessageMetadata
from memory.models import (
    AgentHistory,
    AgentRun,
    ArchiveReason,
    HistoryEntry,
    OwnedQuerySet,
    RunStatus,
    Source,
    Thread,
    ThreadMessage,
    Trigger,
)
from memory.news import tell
from memory.text import clean, clip
from tools.models import AgentAction

# How long a deletion waits for runs to end that it has just stopped.
PATIENCE_SECONDS = 3.0

UNFINISHED = (TaskStatus.ACTIVE, TaskStatus.PAUSED)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that is committed. `created` is false when the same client id had been accepted before; `fresh` is
    true when the run was queued for this very message."""

    message: ThreadMessage
    run_id: UUID | None
    created: bool
    fresh: bool = False


def send_message(thread: Thread, content: str, client_message_id: UUID | None = None) -> Accepted:
    """Commit a user's message, with a queued run unless one is live already (which then picks the message up).

    Args:
        thread: must come from the owner's door; its user is the author.
        client_message_id: the same id gives the same message and run, however often it is sent.

    Raises:
        Refused: the text is blank or too long, or too many of the user's runs are queued.
    """
    content = _checked(content)
    message_id, run_id = new_id(), new_id()
    most = settings.WAYMARK_MAX_QUEUED_PER_USER
    try:
        row = journal.accept(thread.pk, message_id, run_id, content, client_message_id, most=most)
    except psycopg.errors.UniqueViolation:
        row = None
    if row is None:
        return _accepted_before(thread, client_message_id)
    message = ThreadMessage(
        id=message_id,
        thread=thread,
        run_id=row.run_id,
        source=Source.USER,
        content=content,
        processed=False,
        client_message_id=client_message_id,
        created_at=row.created_at,
    )
    rings = row.fresh or row.woken
    queued = [status_changed(row.run_id, RunStatus.QUEUED)] if rings else []
    publish(thread.pk, thread.user_id, posted(message), *queued)
    if rings:
        bell.ring(row.run_id)
    return Accepted(message, row.run_id, created=True, fresh=row.fresh)


def stop_run(run: AgentRun) -> None:
    """Stop a run: at its next token or tool when a worker has it, else as soon as one takes it up. The tasks that it
    sent off are called back. Stopping twice is the same as once."""
    held = journal.stop(run.pk)
    if held is None:
        return
    run.refresh_from_db()
    announce_run(run)
    if held:
        request_stop(run.pk)
    else:
        bell.ring(run.pk)
    if titles := _call_back(AgentTask.objects.filter(sent_by=run)):
        _say_called_back(run, titles)


def _call_back(tasks: OwnedQuerySet[AgentTask]) -> list[str]:
    """Cancel tasks that are not over, without a report to their parent. Returns their titles."""
    titles = []
    for task in tasks.filter(status__in=UNFINISHED):
        if cancel_task(task, UNFINISHED, "Called back before it was done; it will not report."):
            titles.append(task.title)
        for run in AgentRun.objects.live().filter(thread=task.thread_id).select_related("thread"):
            stop_run(run)
    return titles


def cancel_task(task: AgentTask, among: Sequence[TaskStatus], words: str) -> bool:
    """Cancel a task without a report, for the reason in `words`; the agent that sent it off learns it with its next
    message. False: its status is none of `among` any more."""
    with transaction.atomic():
        still = AgentTask.objects.filter(pk=task.pk, status__in=among)
        if not still.update(status=TaskStatus.CANCELLED, paused_at=None, resume_at=None, result=words):
            return False
        tell(task.parent_id, f"The task “{clip(task.title, 80)}”: {words}")
    return True


def _say_called_back(run: AgentRun, titles: Sequence[str]) -> None:
    words = "Called back: " + ", ".join(f"“{clip(title, 80)}”" for title in titles) + "."
    metadata = MessageMetadata(reason="stopped").stored()
    message = ThreadMessage.objects.create(
        thread=run.thread, run=run, source=Source.AGENT, content=words, metadata=metadata
    )
    publish(run.thread_id, run.thread.user_id, posted(message))


def retry(message: ThreadMessage) -> UUID:
    """Start a new run after an error message, on the history as it is. Returns the run's id (the live one if any).

    Raises:
        Refused: the message is not an error that can be tried again, or its session is archived.
    """
    newer = ThreadMessage.objects.filter(thread=message.thread_id, position__gt=message.position)
    gone = AgentHistory.objects.done().filter(thread=message.thread_id, position__gte=message.position)
    retryable = message.source == Source.ERROR and message.metadata.get("retryable")
    if not retryable or newer.exists() or gone.exists():
        raise Refused("not_retryable", "This cannot be tried again.")
    return wake(message.thread, Trigger.RETRY, message.run.context_type if message.run else "")


def retry_now(run: AgentRun) -> None:
    """End a run's wait for its model (mission B5). One that does not wait, or not any more, is left alone."""
    if journal.retry_now(run.pk):
        bell.call(run.thread, run.pk, run.step)


def wake(thread: Thread, trigger: Trigger, context_type: str = "") -> UUID:
    """Queue a run without a new message. Returns its id, or the id of the run that is live already.

    Args:
        context_type: selects how the agent's kind builds the prompt (mission A6), see `Agentable.prompt_for`.
    """
    run_id, fresh = journal.wake(thread.pk, new_id(), trigger, context_type)
    if fresh:
        bell.call(thread, run_id)
    return run_id


def archive_now(thread: Thread, reason: ArchiveReason = ArchiveReason.BY_HAND) -> None:
    """Have the live session archived without waiting until it is idle; a worker sums it up.

    Raises:
        Refused: the agent is at work, there is nothing to archive, or no worker could be told.
    """
    if AgentRun.objects.live().filter(thread=thread).exists():
        raise Refused("busy", "The agent is at work; wait until it is done or stop it.")
    if not HistoryEntry.objects.filter(thread=thread, seq__gte=thread.from_seq).exists():
        raise Refused("empty", "Nothing was said since the last session.")
    if not bell.ring_archive(thread.pk, reason):
        raise Refused("unavailable", "The workers cannot be reached; try again in a moment.")


def assistant_of(user: User) -> UserAgent:
    """The user's assistant, made on first use (accounts are also created by commands and by the admin)."""
    found = UserAgent.objects.filter(user=user).select_related("thread").first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            return UserAgent.objects.create(user=user, thread=open_thread(user, UserAgent.kind()))
    except IntegrityError:
        return UserAgent.objects.select_related("thread").get(user=user)


def open_thread(user: User, kind: str) -> Thread:
    return Thread.objects.create(user=user, kind=kind)


def close_thread(thread: Thread) -> None:
    """Stop whatever is live in a thread, call the tasks back that it sent off, and withdraw what they proposed."""
    family = _family(thread)
    _call_back(AgentTask.objects.filter(parent__in=family))
    for run in AgentRun.objects.live().filter(thread__in=family).select_related("thread"):
        stop_run(run)
    withdraw(AgentAction.objects.proposed().filter(thread__in=family), "The conversation was put away.")


def delete_thread(thread: Thread) -> None:
    """Delete a thread and everything that hangs on it, with the tasks it sent off and theirs. Live runs are stopped
    first and given a moment to end."""
    close_thread(thread)
    family = _family(thread)
    until = time.monotonic() + PATIENCE_SECONDS
    while AgentRun.objects.live().filter(thread__in=family).exists() and time.monotonic() < until:
        time.sleep(0.05)
    with transaction.atomic():
        # Locked parent first, as the journal does; a run that still writes waits and then finds its row gone.
        list(Thread.objects.select_for_update().filter(pk__in=family).order_by("created_at"))
        Thread.objects.filter(pk__in=family).delete()


def _family(thread: Thread) -> list[UUID]:
    found = [thread.pk]
    for parent in found:
        found.extend(AgentTask.objects.filter(parent_id=parent).values_list("thread_id", flat=True))
    return found


def delegate(
    parent: Thread, title: str, instructions: str, sent_by: AgentRun, *, report_as_note: bool = False
) -> AgentTask:
    """Send a sub-agent off; its report wakes the parent. Must be called inside the parent's transaction.

    Args:
        sent_by: the run of the parent that does so. Its context type is kept as the task's origin, and no more.
        report_as_note: keep the report as a note of the parent as well.

    Raises:
        Refused: the user's last message has led to as many tasks as it may, or too many runs are queued.
    """
    _check_delegations(parent)
    most = settings.WAYMARK_MAX_QUEUED_PER_USER
    queued = AgentRun.objects.for_user(parent.user).filter(status=RunStatus.QUEUED)
    if most and queued.count() >= most:
        raise _queue_full()
    thread = open_thread(parent.user, AgentTask.kind())
    task = AgentTask.objects.create(
        user=parent.user,
        thread=thread,
        parent=parent,
        title=title,
        instructions=instructions,
        sent_by=sent_by,
        origin_type=sent_by.context_type,
        report_as_note=report_as_note,
    )
    run = AgentRun.objects.create(thread=thread, trigger=Trigger.TASK)
    Thread.objects.filter(pk=thread.pk).update(live_run=run.pk, pending=1)
    ThreadMessage.objects.create(thread=thread, run=run, source=Source.USER, content=instructions, processed=False)
    transaction.on_commit(lambda: bell.ring(run.pk))
    return task


def _check_delegations(parent: Thread) -> None:
    """An agent that answers every report with another task would go on, and cost, for ever."""
    last = ThreadMessage.objects.filter(thread=parent, source=Source.USER).order_by("-position").first()
    since = AgentTask.objects.filter(parent=parent)
    if last is not None:
        since = since.filter(created_at__gte=last.created_at)
    limit = settings.WAYMARK_MAX_TASKS_PER_MESSAGE
    if since.count() >= limit:
        raise Refused("too_many_tasks", f"At most {limit} tasks can follow from one message of the user.")


def _queue_full() -> Refused:
    most = settings.WAYMARK_MAX_QUEUED_PER_USER
    return Refused("too_many_queued", f"{most} agents wait for their turn already. Try again when some are done.")


def _checked(content: str) -> str:
    content = clean(content).strip()
    if not content:
        raise Refused("blank", "Write something first.")
    if len(content) > settings.WAYMARK_MESSAGE_LENGTH:
        limit = settings.WAYMARK_MESSAGE_LENGTH
        raise Refused("too_long", f"The message has {len(content):,} characters; at most {limit:,} can be sent.")
    return content


def _accepted_before(thread: Thread, client_message_id: UUID | None) -> Accepted:
    message = ThreadMessage.objects.filter(thread=thread, client_message_id=client_message_id).first()
    if message is None and Thread.objects.filter(pk=thread.pk).exists():
        raise _queue_full()
    if message is None:
        raise Refused("gone", "This conversation does not exist any more.")
    return Accepted(message, message.run_id, created=False)
