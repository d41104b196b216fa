"""Stopping runs, with the tasks they sent off; putting conversations away and deleting them."""

import time
from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import Q

from agents.budgets.ledger import release_all
from agents.decisions import withdraw
from agents.engine import bell, journal
from agents.engine.cells import text_cell
from agents.engine.control import request_stop
from agents.engine.notices import write
from agents.heirs import bequeath
from agents.lineage import threads_below
from agents.live.announce import announce_message, announce_run, announce_sender
from agents.models import AgentTask, TaskStatus
from memory.metadata import MessageMetadata
from memory.models import STOPPED, AgentRun, OwnedQuerySet, Source, Thread
from memory.news import tell
from memory.text import clip
from tools.file_models import Workspace
from tools.models import AgentAction

# How long a deletion waits for runs to end that it has just stopped.
PATIENCE_SECONDS = 3.0

UNFINISHED = (TaskStatus.ACTIVE, TaskStatus.PAUSED)
CALLED_BACK = "Called back before it was done; it will not report."


def stop_run(run: AgentRun) -> None:
    """Stop a run: at its next token or tool when a worker has it, else as soon as one takes it up. The tasks that it
    sent off are called back. Stopping twice is the same as once, and finishes what a stop before has begun."""
    held = journal.stop(run.pk)
    if held is None and not AgentRun.objects.filter(pk=run.pk, status__in=STOPPED).exists():
        return
    if held is not None:
        run.refresh_from_db()
        announce_run(run)
        if held:
            request_stop(run.pk)
        else:
            bell.ring(run.pk)
    if titles := _call_back(AgentTask.objects.filter(sent_by=run)):
        _say_called_back(run, titles)


def _call_back(tasks: OwnedQuerySet[AgentTask]) -> list[str]:
    """Cancel tasks that are not over, without a report to their parent. Returns their titles. Those that were
    cancelled before and are still at work are stopped again."""
    titles = []
    at_work = Q(status=TaskStatus.CANCELLED, thread__live_run__isnull=False)
    for task in tasks.filter(Q(status__in=UNFINISHED) | at_work):
        if cancel_task(task, UNFINISHED, CALLED_BACK):
            titles.append(task.title)
        stop_at_work(task)
    return titles


def stop_at_work(task: AgentTask) -> None:
    """Stop whatever is live of a task that was cancelled."""
    for run in AgentRun.objects.live().filter(thread=task.thread_id).select_related("thread"):
        stop_run(run)


def cancel_task(task: AgentTask, among: Sequence[TaskStatus], words: str) -> bool:
    """Cancel a task without a report, for the reason in `words`; the agent that sent it off learns it with its next
    message. False: its status is none of `among` any more."""
    with transaction.atomic():
        still = AgentTask.objects.filter(pk=task.pk, status__in=among)
        if not still.update(status=TaskStatus.CANCELLED, paused_at=None, resume_at=None, result=words):
            return False
        transaction.on_commit(partial(announce_sender, task.pk))
        tell(task.parent_id, f"The task “{clip(task.title, 80)}”: {words}")
    return True


def _say_called_back(run: AgentRun, titles: Sequence[str]) -> None:
    words = "Called back: " + ", ".join(f"“{clip(title, 80)}”" for title in titles) + "."
    cell = text_cell(Source.AGENT, words, MessageMetadata(reason="stopped"))
    for message in write(run.thread_id, run.pk, [cell]):
        announce_message(message, run.thread.user_id)


def close_thread(thread: Thread) -> None:
    """Stop whatever is live in a thread, call the tasks back that it sent off, and withdraw what they proposed."""
    family = threads_below(thread.pk)
    _call_back(AgentTask.objects.filter(parent__in=family))
    for run in AgentRun.objects.live().filter(thread__in=family).select_related("thread"):
        stop_run(run)
    withdraw(AgentAction.objects.proposed().filter(thread__in=family), "The conversation was put away.")


def delete_thread(thread: Thread) -> None:
    """Delete a thread and everything that hangs on it, with the tasks it sent off and theirs; only what they have cost
    stays. Live runs are stopped first and given a moment to end."""
    close_thread(thread)
    family = threads_below(thread.pk)
    until = time.monotonic() + PATIENCE_SECONDS
    while AgentRun.objects.live().filter(thread__in=family).exists() and time.monotonic() < until:
        time.sleep(0.05)
    with transaction.atomic():
        # As whoever changes a file does: the workspace before the thread.
        list(Workspace.objects.select_for_update().filter(pk__in=family).order_by("pk"))
        # A task before its parent, as a report does; a run that still writes waits and then finds its row gone.
        list(Thread.objects.select_for_update().filter(pk__in=family).order_by("-created_at", "pk"))
        release_all(family)
        bequeath(thread, family)
        Thread.objects.filter(pk__in=family).delete()
