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
from memory.text import clean
from tools.forgetting import Basis, Relied, forget, of_file, relied_on
from tools.restoring import CannotRestore


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
        try:
            action = forget(basis, request.POST.getlist("keys"))
        except CannotRestore as busy:
            messages.error(request, _("Nothing was forgotten: %(why)s") % {"why": busy})
            return redirect(request.get_full_path())
        if action is None:
            messages.error(request, _("Nothing was ticked that is still there."))
            return redirect(request.get_full_path())
        return redirect(done_at(reverse("memory", args=[basis.thread.pk]), action))
    page = {"kind": kind, "basis": basis, "here": "memory", "rows": list(_with_addresses(relied_on(basis)))}
    return render(request, "memory/forget.html", page)


def _with_addresses(found: Sequence[Relied]) -> Iterator[tuple[Relied, str]]:
    """Each with the page on which it is read; empty where it has none of its own, or has gone meanwhile."""
    learnings = Learning.objects.in_bulk([UUID(each.id) for each in found if each.kind == "learning"])
    documents = Document.objects.in_bulk([UUID(each.id) for each in found if each.kind == "document"])
    pages = {str(pk): f"{reverse('memory', args=[each.thread_id])}#l{each.number}" for pk, each in learnings.items()}
    for pk, each in documents.items():
        whose: list[Any] = [each.thread_id] if each.thread_id else []
        pages[str(pk)] = reverse("own_document" if whose else "document", args=[*whose, each.name])
    for relied in found:
        own = reverse(relied.kind, args=[relied.id]) if relied.kind in ("note", "session") else ""
        yield relied, own or pages.get(relied.id, "")
