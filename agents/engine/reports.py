"""What a sub-agent's end tells the agent that sent it off."""

from functools import partial

from django.db import transaction

from agents.agentable import Agentable
from agents.engine import bell
from agents.engine.posting import post
from agents.live.announce import announce_message, announce_sender
from memory.marks import mark
from memory.metadata import MessageMetadata
from memory.models import Source, Thread, ThreadMessage, Trigger
from memory.pool import orm, orm_connection

NO_REPORT = "The task ended without a report."


def report(agentable: Agentable, parent: Thread, text: str) -> None:
    """Put a report into the parent's thread and wake the parent, if it does not work already, after the commit.

    Must be called inside the transaction that records the sub-agent's end: a crash loses both or neither. What the
    sub-agent has read marks the parent.
    """
    read = Thread.objects.values_list("sources", flat=True).get(pk=agentable.thread_id)
    if read:
        mark(parent.pk, read, orm_connection())
    metadata = MessageMetadata(task=agentable.pk, task_title=agentable.name())
    post(parent, text, source=Source.AGENT, trigger=Trigger.REPORT, metadata=metadata, inside=True)
    transaction.on_commit(partial(announce_sender, agentable.pk))


def tell_again(agentable: Agentable, parent: Thread) -> None:
    """Show a report, and ring for who is to read it, when the answer to its commit was lost."""
    with orm():
        mine = ThreadMessage.objects.filter(thread=parent, metadata__task=str(agentable.pk))
        message = mine.select_related("thread").order_by("-position").first()
    if message and message.run_id:
        announce_message(message, parent.user_id)
        bell.ring(message.run_id)
