"""What a sub-agent's end tells the agent that sent it off."""

from functools import partial
from uuid import UUID

from django.db import transaction

from agents.agentable import Agentable
from agents.engine import bell, journal
from agents.live.announce import announce_status
from memory.ids import new_id
from memory.metadata import MessageMetadata
from memory.models import RunStatus, Source, Thread, Trigger
from memory.pool import orm_connection

NO_REPORT = "The task ended without a report."


def report(agentable: Agentable, parent: Thread, text: str) -> None:
    """Put a report into the parent's thread and wake the parent, if it does not work already, after the commit.

    Must be called inside the transaction that records the sub-agent's end: a crash loses both or neither.
    """
    run_id = new_id()
    metadata = MessageMetadata(task=agentable.pk, task_title=agentable.name())
    accepted = journal.accept(
        parent.pk,
        new_id(),
        run_id,
        text,
        source=Source.AGENT,
        trigger=Trigger.REPORT,
        metadata=metadata.model_dump(mode="json", exclude_defaults=True),
        on=orm_connection(),
    )
    if accepted is not None and (accepted.fresh or accepted.woken):
        transaction.on_commit(partial(_wake, parent, accepted.run_id))


def _wake(parent: Thread, run_id: UUID) -> None:
    announce_status(parent, run_id, RunStatus.QUEUED)
    bell.ring(run_id)
