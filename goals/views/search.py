"""One box over everything (mission E4)."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agents.refusals import Refused
from agents.signed_in import SignedInRequest, signed_in
from goals.search import search as find


@require_GET
@signed_in
def search(request: SignedInRequest) -> HttpResponse:
    query = request.GET.get("q", "")[:200]
    try:
        hits = find(request.user, query)
    except Refused as refused:
        return HttpResponse(refused.message, status=429, headers={"Retry-After": "1"})
    return render(request, "search.html", {"here": "search", "query": query, "hits": hits})
