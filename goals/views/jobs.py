"""Jobs: the user's runs, newest first, with the helpers they sent off."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET

import goals.jobs
from agents.fairness import is_full
from agents.live.turns import where_of
from agents.signed_in import SignedInRequest, signed_in
from goals.moments import moment
from goals.owners import OWNERS
from goals.templatetags.runs import place
from memory.models import AgentRun


@require_GET
@signed_in
def jobs(request: SignedInRequest) -> HttpResponse:
    before = moment(request.GET.get("before", ""))
    found, more = goals.jobs.jobs(request.user, before)
    older = found[-1].run.created_at.isoformat() if more else ""
    page = {"here": "jobs", "jobs": found, "older": older, "newest": not before, "full": is_full(request.user)}
    return render(request, "jobs.html", page)


@require_GET
@signed_in
def job(request: SignedInRequest, run_id: UUID) -> HttpResponse:
    """To the turn of a run: what was asked, every step, the answer."""
    runs = AgentRun.objects.for_user(request.user).select_related(*OWNERS)
    run = get_object_or_404(runs, pk=run_id)
    return redirect(place(run) + where_of(run))
