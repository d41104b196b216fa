"""Forgetting a source: what relied on it, and what of that goes (mission E5)."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.forgettable import BASES
from agents.pages import done_at
from agents.signed_in import SignedInRequest, signed_in
from memory.models import Document, Learning, Thread
from tools.forgetting import Basis, Relied, forget, of_file, relied_on


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
    return _page(request, "file", of_file(thread, request.GET.get("path", "")))


def _page(request: SignedInRequest, kind: str, basis: Basis) -> HttpResponse:
    if request.method == "POST":
        action = forget(basis, request.POST.getlist("keys"))
        if action is None:
            messages.error(request, _("Nothing was ticked that is still there."))
            return redirect(request.get_full_path())
        return redirect(done_at(reverse("memory", args=[basis.thread.pk]), action))
    page = {"kind": kind, "basis": basis, "here": "memory", "rows": list(_with_addresses(relied_on(basis), basis))}
    return render(request, "memory/forget.html", page)


def _with_addresses(found: Sequence[Relied], basis: Basis) -> Iterator[tuple[Relied, str]]:
    """Each with the page on which it is read. What has gone meanwhile has none of its own."""
    learnings = Learning.objects.in_bulk([UUID(each.id) for each in found if each.kind == "learning"])
    documents = Document.objects.in_bulk([UUID(each.id) for each in found if each.kind == "document"])
    for each in found:
        learning, document = learnings.get(UUID(each.id)), documents.get(UUID(each.id))
        if each.kind in ("note", "session"):
            yield each, reverse(each.kind, args=[each.id])
        elif document:
            whose: list[Any] = [document.thread_id] if document.thread_id else []
            yield each, reverse("own_document" if whose else "document", args=[*whose, document.name])
        else:
            page = reverse("memory", args=[learning.thread_id if learning else basis.thread.pk])
            yield each, f"{page}#l{learning.number}" if learning else page
