"""Jobs: the user's runs, newest first, with the helpers they sent off."""

from datetime import UTC, datetime
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

import goals.jobs
from agents.services import stop_run
from agents.signed_in import SignedInRequest, signed_in
from memory.models import AgentRun


@require_GET
@signed_in
def jobs(request: SignedInRequest) -> HttpResponse:
    before = _moment(request.GET.get("before", ""))
    found, more = goals.jobs.jobs(request.user, before)
    older = found[-1].run.created_at.isoformat() if more else ""
    return render(request, "jobs.html", {"here": "jobs", "jobs": found, "older": older, "newest": not before})


@require_POST
@signed_in
def job_stop(request: SignedInRequest, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(AgentRun.objects.for_user(request.user).select_related("thread"), pk=run_id)
    stop_run(run)
    return redirect("jobs")


def _moment(text: str) -> datetime | None:
    """The instant that `older` of the page before named; None for anything else, such as one outside of all years."""
    try:
        moment = parse_datetime(text)
        return moment.astimezone(UTC) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
