"""Memory: the documents of a user, for all of their agents, and those of each agent (mission E1)."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.agentable import agentable_of
from agents.live.markdown import render as render_markdown
from agents.signed_in import SignedInRequest, signed_in
from goals.context import build
from goals.text_history import document_history
from memory.document import BOOTSTRAP, MEMORY
from memory.documents import (
    DocumentRefused,
    Place,
    delete_document,
    place,
    restore_document,
    vouch,
    write_document,
)
from memory.models import Document, DocumentVersion, Skill, Thread
from memory.room import used
from memory.text import newlines

HINTS: Final[Mapping[str, object]] = {
    "AGENTS": gettext_lazy("How agents work for you: rules, habits, what they never do."),
    "SOUL": gettext_lazy("What they are like: their tone, what they care about."),
    "USER": gettext_lazy("Who you are: your name, languages, work, what matters to you."),
    "IDENTITY": gettext_lazy("Who they are: the name they go by, their part in your life."),
    MEMORY: gettext_lazy("What this agent remembers for long, in its own words."),
}
DAY: Final = gettext_lazy("What the agent wrote down on that day.")


@require_GET
@signed_in
def documents(request: SignedInRequest) -> HttpResponse:
    mine = {each.name: each for each in Document.objects.for_user(request.user).filter(thread=None)}
    shared = [{"name": name, "hint": HINTS[name], "document": mine.get(name)} for name in BOOTSTRAP]
    skills = Skill.objects.for_user(request.user)
    page = {"here": "memory", "shell": build(request.user), "shared": shared, "skills": skills}
    if quota := settings.WAYMARK_TEXT_QUOTA:
        page |= {"used": used(request.user.pk), "quota": quota}
    return render(request, "memory/place.html", page)


@require_http_methods(["GET", "POST"])
@signed_in
def document(request: SignedInRequest, name: str, thread_id: UUID | None = None) -> HttpResponse:
    at = _place(request, name, thread_id)
    if request.method == "GET":
        return _page(request, at)
    text = newlines(request.POST.get("body", ""))
    try:
        write_document(at, text)
    except DocumentRefused as refused:
        return _saved(request, at, str(refused), text, status=422)
    return _saved(request, at, _("Saved %(time)s") % {"time": timezone.localtime().strftime("%H:%M")}, text)


@require_POST
@signed_in
def document_restore(request: SignedInRequest, document_id: UUID, version_id: UUID) -> HttpResponse:
    versions = DocumentVersion.objects.filter(document__user=request.user, document=document_id)
    version = get_object_or_404(versions.select_related("document"), pk=version_id)
    try:
        restore_document(version)
    except DocumentRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("It says again what it said then. What it said until now is in its history."))
    return redirect(_address(version.document))


@require_POST
@signed_in
def document_delete(request: SignedInRequest, document_id: UUID) -> HttpResponse:
    found = _document(request, document_id)
    delete_document(found)
    messages.success(request, _("“%(title)s” is deleted.") % {"title": found.name})
    return redirect(reverse("memory", args=[found.thread_id]) if found.thread_id else "documents")


@require_POST
@signed_in
def document_vouch(request: SignedInRequest, document_id: UUID) -> HttpResponse:
    found = _document(request, document_id)
    vouch(found)
    messages.success(request, _("From now on it counts as yours."))
    return redirect(_address(found))


def _document(request: SignedInRequest, document_id: UUID) -> Document:
    return get_object_or_404(Document.objects.for_user(request.user), pk=document_id)


def _place(request: SignedInRequest, name: str, thread_id: UUID | None) -> Place:
    """Where the document of an address stands."""
    if thread_id is None:
        if name not in BOOTSTRAP:
            raise Http404
        return Place(request.user.pk, None, name)
    thread = get_object_or_404(Thread.objects.for_user(request.user), pk=thread_id)
    try:
        at = place(request.user.pk, thread_id, name)
    except DocumentRefused as refused:
        raise Http404 from refused
    if at.name != name or at.thread is None or not agentable_of(thread).remembers:
        raise Http404
    return at


def _address(of: Document) -> str:
    return (
        reverse("own_document", args=[of.thread_id, of.name]) if of.thread_id else reverse("document", args=[of.name])
    )


def _page(request: SignedInRequest, at: Place, typed: str | None = None, status: int = 200) -> HttpResponse:
    found = at.find()
    agent = agentable_of(Thread.objects.get(pk=at.thread)) if at.thread else None
    text = found.text if found and typed is None else typed or ""
    page = {
        "here": agent.pk if agent else "memory",
        "agent": agent,
        "name": at.name,
        "hint": HINTS.get(at.name, DAY),
        "document": found,
        "text": text,
        "rendered": render_markdown(text),
        "history": document_history(found) if found else [],
        "longest": settings.WAYMARK_DOCUMENT_LENGTH,
    }
    return render(request, "memory/document.html", page, status=status)


def _saved(request: SignedInRequest, at: Place, said: str, typed: str, status: int = 200) -> HttpResponse:
    """The editor saves by itself and swaps one line; without script the page comes back."""
    if request.headers.get("HX-Request"):
        return render(request, "notes/saved.html", {"text": said, "status": status}, status=status)
    if status >= 400:
        messages.error(request, said)
        return _page(request, at, typed, status)
    return redirect(request.path)
