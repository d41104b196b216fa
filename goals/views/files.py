"""The files of a goal's agent: what there is, and putting in, saving and deleting one."""

from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from redis import RedisError

from agents.engine.presence import commands_withheld
from agents.signed_in import SignedInRequest, signed_in
from goals.file_serving import downloaded
from goals.models import Goal
from memory.files import safe_name
from tools.files import FileRefused
from tools.filing import add_file, delete_file, files_of
from tools.models import AgentAction


@require_http_methods(["GET", "POST"])
@signed_in
def goal_files(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = _goal(request, goal_id)
    if request.method == "POST" and (error := _put_in(request, goal)):
        return _page(request, goal, error=error, status=422)
    return redirect("goal_files", goal.pk) if request.method == "POST" else _page(request, goal)


@require_GET
@signed_in
def goal_file(request: SignedInRequest, goal_id: UUID, path: str) -> HttpResponseBase:
    return downloaded(_goal(request, goal_id).thread, path)


@require_POST
@signed_in
def goal_file_delete(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = _goal(request, goal_id)
    try:
        deleted = delete_file(goal.thread, request.POST.get("path", ""))
    except FileRefused as refused:
        return _page(request, goal, error=str(refused), status=422)
    if deleted is None:
        raise Http404
    return _page(request, goal, deleted=deleted)


def _goal(request: SignedInRequest, goal_id: UUID) -> Goal:
    return get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)


def _put_in(request: SignedInRequest, goal: Goal) -> str:
    """Put in what was uploaded; returns why not."""
    uploads = request.FILES.getlist("files")
    if not uploads:
        return _("Choose a file first.")
    for upload in uploads:
        name = safe_name(upload.name or "")
        try:
            add_file(goal.thread, name, upload.size or 0, upload.chunks())
        except FileRefused as refused:
            return f"{name}: {refused}"
        messages.success(request, _("“%(name)s” is in the workspace.") % {"name": name})
    return ""


def _page(
    request: SignedInRequest, goal: Goal, *, error: str = "", deleted: AgentAction | None = None, status: int = 200
) -> HttpResponse:
    after = request.GET.get("after") or request.POST.get("after", "")
    withheld: list[str] = []
    with suppress(RedisError):
        withheld = commands_withheld()
    page = {
        "here": goal.pk,
        "goal": goal,
        "found": files_of(goal.thread, after),
        "after": after,
        "most_bytes": settings.WAYMARK_WORKSPACE_UPLOAD,
        "withheld": withheld,
        "error": error,
        "deleted": deleted if deleted and deleted.undo and deleted.undo["changes"] else None,
    }
    return render(request, "goals/files.html", page, status=status)
