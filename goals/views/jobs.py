"""Jobs: the user's runs, newest first, with the helpers they sent off."""

from datetime import UTC, datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET

import goals.jobs
from agents.signed_in import SignedInRequest, signed_in


@require_GET
@signed_in
def jobs(request: SignedInRequest) -> HttpResponse:
    before = _moment(request.GET.get("before", ""))
    found, more = goals.jobs.jobs(request.user, before)
    older = found[-1].run.created_at.isoformat() if more else ""
    return render(request, "jobs.html", {"here": "jobs", "jobs": found, "older": older, "newest": not before})


def _moment(text: str) -> datetime | None:
    """The instant that `older` of the page before named; None for anything else, such as one outside of all years."""
    try:
        moment = parse_datetime(text)
        return moment.astimezone(UTC) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
