"""Skills: taken in, read as a whole, switched on, changed, put in the place of another, kept from single agents, given
away (mission E1)."""

from base64 import b64decode, b64encode
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
from goals.text_history import skill_history
from memory.models import Skill, SkillFile, SkillVersion
from memory.skill_files import SkillRefused, packed
from memory.skills import (
    SkillTaken,
    add_skill,
    change_skill,
    delete_skill,
    exported,
    keep_from,
    restore_skill,
    switch_skill,
)
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
    if request.method == "GET":
        return _new_page(request)
    upload, replaces = b"", bool(request.POST.get("replace"))
    try:
        upload = _uploaded(request) or newlines(request.POST.get("text", "")).encode()
        added = add_skill(request.user, upload, replace=replaces)
    except SkillTaken as there:
        return _new_page(request, taken=there.skill, upload=b64encode(upload).decode())
    except SkillRefused as refused:
        return _new_page(request, problem=str(refused))
    if replaces:
        said = _("“%(name)s” is replaced. What it was before is in its history.")
        messages.success(request, said % {"name": added.name})
    return redirect("skill", added.pk)


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
    is_read = request.POST.get("read") == found.updated_at.isoformat()
    if on and not (is_read and switch_skill(found, on=True, read=found.updated_at)):
        messages.error(request, _("It says something else by now. Read it as it is now, then switch it on."))
        return redirect("skill", skill_id)
    if not on:
        switch_skill(found, on=False)
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
def skill_restore(request: SignedInRequest, skill_id: UUID, version_id: UUID) -> HttpResponse:
    versions = SkillVersion.objects.filter(skill__user=request.user, skill=skill_id)
    version = get_object_or_404(versions, pk=version_id)
    try:
        restore_skill(version)
    except SkillRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("It is again what it was then. What it was until now is in its history."))
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


def _new_page(
    request: SignedInRequest, *, problem: str = "", taken: Skill | None = None, upload: str = ""
) -> HttpResponse:
    """
    Args:
        taken: has the name of what came. upload: that, in base64: it comes again when it is to replace the other.
    """
    page = {
        "here": "memory",
        "typed": request.POST.get("text", ""),
        "problem": problem,
        "taken": taken,
        "upload": upload,
        "most_bytes": settings.WAYMARK_SKILL_BYTES,
    }
    return render(request, "memory/skill_new.html", page, status=422 if problem or taken else 200)


def _uploaded(request: SignedInRequest) -> bytes | None:
    """The zip or file that was chosen, or a zip of the folder that was: a browser sends its files by their bare names,
    and `static/js/1-page.js` their paths with them. Or what was chosen before. None: neither."""
    if again := request.POST.get("replace"):
        try:
            return b64decode(again)
        except ValueError as broken:
            raise SkillRefused(_("This cannot be read.")) from broken
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
        "history": skill_history(found),
        "longest": settings.WAYMARK_SKILL_LENGTH,
    }
    return render(request, "memory/skill.html", page, status=status)


def _beside(file: SkillFile) -> Beside:
    return Beside(plain(file.path), len(file.content), None if file.text is None else plain(file.text))
