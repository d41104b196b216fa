"""Whether anything has happened that an agent does not know of: decided without a call of a model (mission H10)."""

from datetime import datetime
from uuid import UUID

from memory.models import AgentRun, Document, Note, Source, Thread, ThreadMessage
from tools.file_models import WorkspaceFile
from tools.models import AgentAction


def has_changed(thread_id: UUID) -> bool:
    """Whether somebody else than the agent has changed something since its last run ended. What it did itself it
    knows, and a message of its user wakes it anyway."""
    last = AgentRun.objects.filter(thread=thread_id).order_by("-created_at").first()
    since = Thread.objects.get(pk=thread_id).created_at if last is None else last.finished_at
    if since is None:
        return True
    return (
        Note.objects.filter(thread=thread_id, updated_at__gt=since).exists()
        or Document.objects.filter(thread=thread_id, updated_at__gt=since).exists()
        or WorkspaceFile.objects.filter(workspace=thread_id, updated_at__gt=since).exists()
        or AgentAction.objects.filter(thread=thread_id, run=None, created_at__gt=since).exists()
    )


def last_said(thread_id: UUID) -> datetime:
    """When the user last said something here; at first when it began."""
    said = ThreadMessage.objects.filter(thread=thread_id, source=Source.USER).order_by("-position").first()
    return said.created_at if said else Thread.objects.get(pk=thread_id).created_at
