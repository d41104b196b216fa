"""A run that waits by itself, for its model or for a budget, goes on before its time."""

from uuid import UUID

from django.contrib.auth.models import User

from agents.engine import bell, journal
from memory.models import AgentRun, RunStatus, Thread


def end_wait(thread: Thread, run_id: UUID, step: int) -> bool:
    """Let a run try its step again. One that does not wait, or not any more, is left alone: False."""
    if not journal.retry_now(run_id):
        return False
    bell.announce_and_ring(thread, run_id, step)
    return True


def end_waits_for_budgets(user: User) -> None:
    """A budget was changed, or what is reckoned with (a price, the model, the time zone of its windows). After its
    commit."""
    waiting = AgentRun.objects.for_user(user).filter(status=RunStatus.WAITING_BUDGET).select_related("thread")
    for run in waiting:
        end_wait(run.thread, run.pk, run.step)
