"""Notes: the list, and one note to write and read."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.live.markdown import render as render_markdown
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from goals.context import all_places, build
from goals.forms import NoteForm
from goals.models import Goal
from goals.schedules import note_changed
from goals.text_history import note_history
from memory.models import Note, NoteVersion, Thread
from memory.notes import NoteRefused, create_note, delete_note, restore, search_notes, update_note
from memory.text import newlines

SHOWN = 200


@require_GET
@signed_in
def notes(request: SignedInRequest) -> HttpResponse:
    return _page(request, None, view="list")


@require_GET
@signed_in
def goal_notes(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)
    return _page(request, None, view="list", goal=goal)


@require_http_methods(["GET", "POST"])
@signed_in
def note(request: SignedInRequest, note_id: UUID) -> HttpResponse:
    found = get_object_or_404(Note.objects.for_user(request.user).select_related("thread"), pk=note_id)
    if request.method == "GET":
        return _page(request, found, view="note")
    form = NoteForm(request.POST)
    title, body = form.data.get("title", ""), newlines(form.data.get("body", ""))
    try:
        update_note(found, title=title, body=body)
    except NoteRefused as refused:
        found.title, found.body = title, body  # on the page, to be put right
        return _saved(request, found, str(refused), status=422)
    note_changed(found.thread)
    return _saved(request, found, _("Saved %(time)s") % {"time": timezone.localtime().strftime("%H:%M")})


@require_http_methods(["GET", "POST"])
@signed_in
def note_new(request: SignedInRequest) -> HttpResponse:
    form = NoteForm(request.POST or None)
    error = ""
    if request.method == "POST":
        title, body = form.data.get("title", ""), newlines(form.data.get("body", ""))
        try:
            made = create_note(_thread(request, form.data.get("goal", "")), title, body)
        except NoteRefused as refused:
            error = str(refused)
        else:
            note_changed(made.thread)
            return redirect("note", made.pk)
    chosen = request.GET.get("goal", form.data.get("goal", ""))
    return _page(request, None, view="note", form=form, error=error, chosen=chosen)


@require_POST
@signed_in
def note_restore(request: SignedInRequest, note_id: UUID, version_id: UUID) -> HttpResponse:
    versions = NoteVersion.objects.filter(note__user=request.user, note=note_id).select_related("note__thread")
    version = get_object_or_404(versions, pk=version_id)
    try:
        restored = restore(version)
    except NoteRefused as refused:
        messages.error(request, str(refused))
    else:
        note_changed(restored.thread)
        messages.success(request, _("It says again what it said then. What it said until now is in its history."))
    return redirect("note", note_id)


@require_POST
@signed_in
def note_delete(request: SignedInRequest, note_id: UUID) -> HttpResponse:
    found = get_object_or_404(Note.objects.for_user(request.user), pk=note_id)
    delete_note(found)
    messages.success(request, _("“%(title)s” is deleted.") % {"title": found.title})
    return redirect("notes")


@require_POST
@signed_in
def note_preview(request: SignedInRequest) -> HttpResponse:
    body = newlines(request.POST.get("body", ""))
    if len(body) > Note.BODY_LENGTH:
        return HttpResponse(_("Too long for a note."), status=422)
    return HttpResponse(render_markdown(body))


def _page(
    request: SignedInRequest, note: Note | None, view: str, goal: Goal | None = None, **extra: object
) -> HttpResponse:
    shell = build(request.user)
    query = request.GET.get("q", "")
    listed = list(search_notes(request.user, query, goal.thread if goal else None)[:SHOWN])
    shown = note or (listed[0] if listed and view == "list" else None)
    page = {
        "here": "notes",
        "shell": shell,
        "places": all_places(request.user, shell),
        "notes": listed,
        "query": query,
        "goal": goal,
        "note": shown,
        "view": view,
        "history": note_history(shown) if shown else [],
        "rendered": render_markdown(shown.body) if shown else "",
        **extra,
    }
    return render(request, "notes/page.html", page, status=422 if extra.get("error") else 200)


def _saved(request: SignedInRequest, note: Note, text: str, status: int = 200) -> HttpResponse:
    """The editor saves by itself and swaps one line; without script the page comes back."""
    if request.headers.get("HX-Request"):
        return render(request, "notes/saved.html", {"text": text, "status": status}, status=status)
    if status >= 400:
        messages.error(request, text)
        return _page(request, note, view="note", error=text)
    return redirect("note", note.pk)


def _thread(request: SignedInRequest, goal_id: str) -> Thread:
    """The thread of one of the user's goals, or the assistant's when none is named."""
    if not goal_id:
        return assistant_of(request.user).thread
    try:
        chosen = UUID(goal_id)
    except ValueError as error:
        raise NoteRefused(_("This goal does not exist.")) from error
    return get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=chosen).thread
