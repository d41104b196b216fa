"""The inbox: everything that waits for its person's word, and the words that stand."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.signed_in import SignedInRequest, signed_in
from goals.context import all_places, build
from goals.inbox import given, lately, offered, questions
from tools import trust
from tools.mcp.services import waiting_of
from tools.models import Trust


@require_GET
@signed_in
def approvals(request: SignedInRequest) -> HttpResponse:
    shell = build(request.user)
    places = all_places(request.user, shell)
    page = {
        "here": "approvals",
        "shell": shell,
        "questions": questions(request.user, places),
        "servers_off": waiting_of(request.user),
        "lately": lately(request.user),
        "offers": offered(request.user, places),
        "given": given(request.user, places),
    }
    return render(request, "approvals.html", page)


@require_POST
@signed_in
def trust_give(request: SignedInRequest, thread_id: UUID, tool: str) -> HttpResponse:
    """Only what is on offer can be given."""
    offer = next(
        (each for each in trust.offers(request.user) if (each.thread.pk, each.tool) == (thread_id, tool)), None
    )
    if offer is None:
        messages.error(request, _("This cannot be allowed any more."))
    else:
        trust.grant(request.user, offer.thread, offer.tool, None)
        messages.success(request, _("It runs without asking now. One rejection or undo takes that back."))
    return redirect("approvals")


@require_POST
@signed_in
def trust_withdraw(request: SignedInRequest, trust_id: UUID) -> HttpResponse:
    trust.withdraw(get_object_or_404(Trust.objects.for_user(request.user), pk=trust_id))
    messages.success(request, _("It asks again from now on."))
    return redirect("approvals")
