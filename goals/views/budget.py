"""Budgets: what may be spent, what is spent, and more for now."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.budgets import ledger, words
from agents.budgets.models import Budget
from agents.budgets.services import allow_more, current, remove_budget, set_budget
from agents.refusals import Refused
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from goals.forms import BudgetForm
from goals.models import Goal


@require_http_methods(["GET", "POST"])
@signed_in
def settings_budget(request: SignedInRequest) -> HttpResponse:
    form = BudgetForm(request.POST or None, goals=Goal.objects.for_user(request.user))
    if request.method == "POST" and form.is_valid():
        given, goal = form.cleaned_data, form.cleaned_data["goal"]
        set_budget(request.user, given["window"], given["money"], given["tokens"], goal.thread if goal else None)
        messages.success(request, _("Saved."))
        return redirect("settings_budget")
    page = {"form": form, "budgets": shown(request), "here": "settings", "section": "budget"}
    return render(request, "settings/budget.html", page, status=422 if form.is_bound else 200)


@require_POST
@signed_in
def budget_more(request: SignedInRequest, budget_id: UUID) -> HttpResponse:
    """One dollar more in this window; what waits for it goes on (mission C5)."""
    try:
        allow_more(_found(request, budget_id))
    except Refused as refused:
        messages.error(request, refused.message)
        return redirect("settings_budget")
    return HttpResponse(status=204) if request.headers.get("HX-Request") else redirect("settings_budget")


@require_POST
@signed_in
def budget_delete(request: SignedInRequest, budget_id: UUID) -> HttpResponse:
    remove_budget(_found(request, budget_id))
    return redirect("settings_budget")


def _found(request: SignedInRequest, budget_id: UUID) -> Budget:
    return get_object_or_404(Budget.objects.for_user(request.user).select_related("user"), pk=budget_id)


def shown(request: SignedInRequest) -> list[dict[str, object]]:
    """Each with whose it is and how much of it is spent; those of each run have nothing to count."""
    titles = dict(Goal.objects.for_user(request.user).values_list("thread", "title"))
    titles[assistant_of(request.user).thread_id] = _("Assistant")
    budgets = current(Budget.objects.for_user(request.user).select_related("thread"), request.user)
    return [
        {
            "row": budget,
            "thread_id": budget.thread_id,
            "whose": titles.get(budget.thread_id, _("A task")) if budget.thread_id else _("Everything"),
            "limits": words.limits_of(budget),
            "percent": round(100 * ledger.share_spent(budget)),
            "counts": budget.counts,
        }
        for budget in budgets
    ]
