"""A run that waits by itself, for its model or for a budget, goes on before its time."""

from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from agents.engine import bell, journal
from memory.models import AgentRun, RunStatus, Thread


def end_wait(thread: Thread, run_id: UUID, step: int) -> None:
    """Let a run try its step again. One that does not wait, or not any more, is left alone."""
    if journal.retry_now(run_id):
        bell.announce_and_ring(thread, run_id, step)


def end_waits_for_budgets(user: User) -> None:
    """A budget is changed, or what is reckoned with (a price, the model, the time zone of its windows): once that is
    committed, runs that wait for a budget try their step again."""
    transaction.on_commit(partial(_end_waits, user))


def _end_waits(user: User) -> None:
    waiting = AgentRun.objects.for_user(user).filter(status=RunStatus.WAITING_BUDGET).select_related("thread")
    for run in waiting:
        end_wait(run.thread, run.pk, run.step)
