"""A run that waits for its model or for a budget goes on before its time; one that waits for a person gives way."""

from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from agents.engine import bell, journal
from memory.models import GAVE_WAY, AgentRun, RunStatus, Thread


def end_wait(thread: Thread, run_id: UUID, step: int) -> None:
    """Let a run try its step again. One that does not wait, or not any more, is left alone."""
    if journal.retry_now(run_id):
        bell.announce_and_ring(thread, run_id, step)


def give_way(thread: Thread) -> None:
    """Let the live run end if it waits for its user's word, so that another may have the thread. Its calls are answered
    as proposed and go on waiting (docs/reliability.md, "Approvals"); no model is asked. A worker does it, after the
    transaction of the caller, who holds the thread. A run at work, or that waits otherwise, is left alone."""
    waiting = AgentRun.objects.filter(thread=thread, status=RunStatus.WAITING_APPROVAL)
    run = waiting.first()
    if run and waiting.update(status=RunStatus.QUEUED, due_at=None, reason=GAVE_WAY):
        transaction.on_commit(partial(bell.announce_and_ring, thread, run.pk, run.step))


def end_waits_for_budgets(user: User) -> None:
    """A budget is changed, or what is reckoned with (a price, the model, the time zone of its windows): once that is
    committed, runs that wait for a budget try their step again."""
    transaction.on_commit(partial(_end_waits, user))


def _end_waits(user: User) -> None:
    waiting = AgentRun.objects.for_user(user).filter(status=RunStatus.WAITING_BUDGET).select_related("thread")
    for run in waiting:
        end_wait(run.thread, run.pk, run.step)
