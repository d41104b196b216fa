"""Jobs: the user's runs, newest first."""

from datetime import UTC, datetime
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

from agents.signed_in import SignedInRequest, signed_in
from agents.stopping import stop_run
from memory.models import AgentRun

SHOWN = 50


@require_GET
@signed_in
def jobs(request: SignedInRequest) -> HttpResponse:
    runs = AgentRun.objects.for_user(request.user).select_related(
        "thread__goals_goal", "thread__agents_useragent", "thread__agents_agenttask"
    )
    before = _moment(request.GET.get("before", ""))
    if before:
        runs = runs.filter(created_at__lt=before)
    page = list(runs.order_by("-created_at")[: SHOWN + 1])
    return render(
        request,
        "jobs.html",
        {
            "here": "jobs",
            "runs": page[:SHOWN],
            "older": page[SHOWN - 1].created_at.isoformat() if len(page) > SHOWN else "",
            "newest": not before,
        },
    )


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
