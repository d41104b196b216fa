"""A goal's page: its conversation, and beside it what the goal has come to. Also the sidebar, when it changes."""

from urllib.parse import urlsplit
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.views.decorators.http import require_GET

from agents.pages import conversation
from agents.signed_in import SignedInRequest, signed_in
from goals.context import build
from goals.models import Goal

_SECTIONS = {"home": "home", "notes": "notes", "note": "notes", "goal_notes": "notes", "jobs": "jobs"}
_SECTIONS |= {"search": "search", "approvals": "approvals", "activity": "activity", "activity_undo": "activity"}


@require_GET
@signed_in
def goal(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    found = get_object_or_404(Goal.objects.for_user(request.user).select_related("thread__user"), pk=goal_id)
    page = conversation(request, found.thread) | {"goal": found, "here": found.pk}
    return render(request, "goals/goal.html", page)


@require_GET
@signed_in
def sidebar(request: SignedInRequest) -> HttpResponse:
    """The sidebar and the bar of tabs alone, as they stand on the page that asks (HX-Current-URL)."""
    shell = build(request.user)
    here = _here(request.headers.get("HX-Current-URL", ""), shell.assistant.id)
    page = {"shell": shell, "here": here}
    bars = [render_to_string(f"includes/{bar}.html", page, request) for bar in ("sidebar", "tabbar")]
    answer = HttpResponse("".join(bars))
    answer["HX-Trigger"] = "agents-changed"  # home and jobs show the same news
    return answer


def _here(address: str, assistant: UUID) -> UUID | str:
    try:
        match = resolve(urlsplit(address).path or "/")
    except (Resolver404, ValueError):
        return ""
    if match.url_name in ("goal", "goal_settings"):
        return UUID(str(match.kwargs["goal_id"]))
    if match.url_name == "assistant":
        return assistant
    return _SECTIONS.get(match.url_name or "", "settings" if "settings" in (match.url_name or "") else "")
