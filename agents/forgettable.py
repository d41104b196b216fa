"""The sources that can be forgotten, each from its user's own door (mission E5)."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from agents.services import assistant_of
from memory.models import AgentHistory, Document, Note, Source, ThreadMessage
from tools.forgetting import Basis, of_document, of_message, of_note, of_session


def message_basis(user: User, pk: UUID) -> Basis:
    mine = ThreadMessage.objects.for_user(user).filter(source=Source.USER).select_related("thread")
    return of_message(get_object_or_404(mine, pk=pk))


def note_basis(user: User, pk: UUID) -> Basis:
    return of_note(get_object_or_404(Note.objects.for_user(user).select_related("thread"), pk=pk))


def document_basis(user: User, pk: UUID) -> Basis:
    found = get_object_or_404(Document.objects.for_user(user).select_related("thread"), pk=pk)
    return of_document(found, found.thread or assistant_of(user).thread)


def session_basis(user: User, pk: UUID) -> Basis:
    mine = AgentHistory.objects.for_user(user).done().select_related("thread")
    return of_session(get_object_or_404(mine, pk=pk))


BASES: Final[Mapping[str, Callable[[User, UUID], Basis]]] = {
    "message": message_basis,
    "note": note_basis,
    "document": document_basis,
    "session": session_basis,
}
