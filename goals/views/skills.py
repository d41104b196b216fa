"""Skills: taken in, read as a whole, switched on, changed, kept from single agents, given away (mission E1)."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.live.cards import plain
from agents.pages import uuid_or_none
from agents.signed_in import SignedInRequest, signed_in
from goals.context import all_places, build
from memory.models import Skill, SkillFile
from memory.skill_files import SkillRefused, packed
from memory.skills import add_skill, change_skill, delete_skill, exported, keep_from, switch_skill
from memory.text import newlines


@dataclass(frozen=True, slots=True)
class Beside:
    """A file of a skill as people read it: all of it, with what cannot be seen named. text: None: it is no text."""

    path: str
    size: int
    text: str | None


@require_http_methods(["GET", "POST"])
@signed_in
def skill_new(request: SignedInRequest) -> HttpResponse:
    typed, problem = request.POST.get("text", ""), ""
    if request.method == "POST":
        try:
            return redirect("skill", add_skill(request.user, _uploaded(request) or newlines(typed).encode()).pk)
        except SkillRefused as refused:
            problem = str(refused)
    page = {"here": "memory", "typed": typed, "problem": problem, "most_bytes": settings.WAYMARK_SKILL_BYTES}
    return render(request, "memory/skill_new.html", page, status=422 if problem else 200)


@require_http_methods(["GET", "POST"])
@signed_in
def skill(request: SignedInRequest, skill_id: UUID) -> HttpResponse:
    found = _skill(request, skill_id)
    if request.method == "GET":
        return _page(request, found)
    typed = newlines(request.POST.get("text", ""))
    try:
        change_skill(found, typed)
    except SkillRefused as refused:
        return _page(request, _skill(request, skill_id), typed=typed, problem=str(refused), status=422)
    messages.success(request, _("It is saved."))
    return redirect("skill", skill_id)


@require_POST
@signed_in
def skill_switch(request: SignedInRequest, skill_id: UUID) -> HttpResponse:
    found, on = _skill(request, skill_id), request.POST.get("on") == "1"
    switch_skill(found, on=on)
    said = _("Your agents may use “%(name)s” now.") if on else _("No agent uses “%(name)s” any more.")
    messages.success(request, said % {"name": found.name})
    return redirect("skill", skill_id)


@require_POST
@signed_in
def skill_agents(request: SignedInRequest, skill_id: UUID) -> HttpResponse:
    """Of the agents that the page has shown, those that are not ticked do without it; for others all stays as it is."""
    found = _skill(request, skill_id)
    shown, ticked = ({*map(uuid_or_none, request.POST.getlist(name))} for name in ("shown", "agents"))
    off = {each.thread_id for each in found.off_for.all()}
    keep_from(found, [thread for thread in (off - shown) | (shown - ticked) if thread])
    messages.success(request, _("It is saved."))
    return redirect("skill", skill_id)


@require_POST
@signed_in
def skill_delete(request: SignedInRequest, skill_id: UUID) -> HttpResponse:
    found = _skill(request, skill_id)
    delete_skill(found)
    messages.success(request, _("“%(title)s” is deleted.") % {"title": found.name})
    return redirect("documents")


@require_GET
@signed_in
def skill_zip(request: SignedInRequest, skill_id: UUID) -> HttpResponse:
    found = _skill(request, skill_id)
    disposition = content_disposition_header(True, f"{found.name}.zip") or "attachment"
    return HttpResponse(exported(found), content_type="application/zip", headers={"Content-Disposition": disposition})


def _uploaded(request: SignedInRequest) -> bytes | None:
    """The zip or file that was chosen, or a zip of the folder that was: a browser sends its files by their bare names,
    and `static/js/1-page.js` their paths with them. None: neither."""
    if file := request.FILES.get("file"):
        return bytes(file.read(settings.WAYMARK_SKILL_BYTES + 1))
    folder, paths = request.FILES.getlist("folder"), request.POST.getlist("path")
    if sum(file.size or 0 for file in folder) > settings.WAYMARK_SKILL_UNPACKED_BYTES:
        raise SkillRefused(f"The folder has more than {settings.WAYMARK_SKILL_UNPACKED_BYTES:,} bytes.")
    if len(paths) != len(folder):
        paths = [file.name or "" for file in folder]
    named = ((path[: SkillFile.PATH_LENGTH + 1], file) for path, file in zip(paths, folder, strict=True))
    return packed((path, file.read()) for path, file in named) if folder else None


def _skill(request: SignedInRequest, skill_id: UUID) -> Skill:
    return get_object_or_404(Skill.objects.for_user(request.user), pk=skill_id)


def _page(
    request: SignedInRequest, found: Skill, *, typed: str | None = None, problem: str = "", status: int = 200
) -> HttpResponse:
    off = {each.thread_id for each in found.off_for.all()}
    shell = build(request.user)
    page = {
        "here": "memory",
        "shell": shell,
        "skill": found,
        "shown": plain(found.text),
        "files": [_beside(file) for file in found.files.all()],
        "agents": [(place, place.thread not in off) for place in all_places(request.user, shell).values()],
        "typed": found.text if typed is None else typed,
        "problem": problem,
        "longest": settings.WAYMARK_SKILL_LENGTH,
    }
    return render(request, "memory/skill.html", page, status=status)


def _beside(file: SkillFile) -> Beside:
    return Beside(plain(file.path), len(file.content), None if file.text is None else plain(file.text))
