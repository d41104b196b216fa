"""What a sub-agent's end tells the agent that sent it off."""

from agents.agentable import Agentable
from agents.engine.posting import post
from memory.metadata import MessageMetadata
from memory.models import Source, Thread, Trigger

NO_REPORT = "The task ended without a report."


def report(agentable: Agentable, parent: Thread, text: str) -> None:
    """Put a report into the parent's thread and wake the parent, if it does not work already, after the commit.

    Must be called inside the transaction that records the sub-agent's end: a crash loses both or neither.
    """
    metadata = MessageMetadata(task=agentable.pk, task_title=agentable.name())
    post(parent, text, source=Source.AGENT, trigger=Trigger.REPORT, metadata=metadata, inside=True)
