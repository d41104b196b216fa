"""What a sub-agent's end tells the agent that sent it off."""

from functools import partial

from django.db import transaction

from agents.agentable import Agentable
from agents.engine import bell, journal
from memory.ids import new_id
from memory.metadata import MessageMetadata
from memory.models import Source, Thread, Trigger
from memory.pool import orm_connection

NO_REPORT = "The task ended without a report."


def report(agentable: Agentable, parent: Thread, text: str) -> None:
    """Put a report into the parent's thread and wake the parent, if it does not work already, after the commit.

    Must be called inside the transaction that records the sub-agent's end: a crash loses both or neither.
    """
    metadata = MessageMetadata(task=agentable.pk, task_title=agentable.name())
    accepted = journal.accept(
        parent.pk,
        new_id(),
        new_id(),
        text,
        source=Source.AGENT,
        trigger=Trigger.REPORT,
        metadata=metadata.stored(),
        on=orm_connection(),
    )
    if accepted is not None and (accepted.fresh or accepted.woken):
        transaction.on_commit(partial(bell.call, parent, accepted.run_id))
