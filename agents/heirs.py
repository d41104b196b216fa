"""What a deleted agent has cost stays on record (mission C4)."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from agents.models import AgentTask, CallStatus, ModelCall
from memory.models import Thread

DELETED = "Its agent was deleted before an answer was recorded."


def bequeath(thread: Thread, family: Sequence[UUID]) -> None:
    """Give the calls of a thread that is about to be deleted, and of all that hang on it, to whoever is left: a task's
    to the agent that had sent it off, any other's to the user. Part of the deletion's transaction, after the books
    are closed (`ledger.release_all`)."""
    parent = AgentTask.objects.filter(thread=thread).values_list("parent", flat=True).first()
    heir = {"run": None, "thread": parent, "user": None if parent else thread.user_id}
    for mine in (Q(run__thread__in=family), Q(thread__in=family)):
        calls = ModelCall.objects.filter(mine)
        calls.filter(status=CallStatus.STARTED).update(status=CallStatus.FAILED, error=DELETED, finished_at=Now())
        calls.update(**heir)
