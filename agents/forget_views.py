"""Forgetting a source: what relied on it, and what of that goes (mission E5)."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.pages import done_at
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from memory.models import AgentHistory, Document, Learning, Note, Source, Thread, ThreadMessage
from memory.text import clean
from tools.forgetting import Basis, Relied, forget, of_document, of_file, of_message, of_note, of_session, relied_on


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


@require_http_methods(["GET", "POST"])
@signed_in
def forget_source(request: SignedInRequest, kind: str, source_id: UUID) -> HttpResponse:
    if kind not in BASES:
        raise Http404
    return _page(request, kind, BASES[kind](request.user, source_id))


@require_http_methods(["GET", "POST"])
@signed_in
def forget_file(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    """Of the file at `?path=` in the workspace of an agent."""
    thread = get_object_or_404(Thread.objects.for_user(request.user), pk=thread_id)
    return _page(request, "file", of_file(thread, clean(request.GET.get("path", ""))))


def _page(request: SignedInRequest, kind: str, basis: Basis) -> HttpResponse:
    if request.method == "POST":
        action = forget(basis, request.POST.getlist("keys"))
        if action is None:
            messages.error(request, _("Nothing was ticked that is still there."))
            return redirect(request.get_full_path())
        return redirect(done_at(reverse("memory", args=[basis.thread.pk]), action))
    page = {
        "kind": kind,
        "basis": basis,
        "here": "memory",
        "rows": [(each, address(each, basis)) for each in relied_on(basis)],
    }
    return render(request, "memory/forget.html", page)


def address(of: Relied, basis: Basis) -> str:
    """The page on which it is read."""
    match of.kind:
        case "note" | "session":
            return reverse(of.kind, args=[of.id])
        case "learning":
            learning = Learning.objects.get(pk=of.id)
            return f"{reverse('memory', args=[learning.thread_id])}#l{learning.number}"
        case "document":
            document = Document.objects.get(pk=of.id)
            whose: list[Any] = [document.thread_id] if document.thread_id else []
            return reverse("own_document" if whose else "document", args=[*whose, document.name])
    return reverse("memory", args=[basis.thread.pk])
