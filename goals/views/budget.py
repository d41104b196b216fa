"""Budgets: what may be spent, what is spent, and more for now."""

import re
from decimal import Decimal
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.budgets import room, words
from agents.budgets.models import Budget
from agents.budgets.services import MORE, allow_more, current, remove_budget, set_budget
from agents.pages import uuid_or_none
from agents.providers.pricing import dollars
from agents.refusals import Refused
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from goals.forms import BudgetForm
from goals.models import Goal

DOLLARS = re.compile(r"[1-9][0-9]{0,6}")


@require_http_methods(["GET", "POST"])
@signed_in
def settings_budget(request: SignedInRequest) -> HttpResponse:
    changed, goals = _changed(request), Goal.objects.for_user(request.user)
    form = BudgetForm(request.POST or None, goals=goals, initial=_initial(changed, goals))
    if request.method == "POST" and form.is_valid():
        given, goal = form.cleaned_data, form.cleaned_data["goal"]
        set_budget(request.user, given["window"], given["money"], given["tokens"], goal.thread if goal else None)
        messages.success(request, _("Saved."))
        return redirect("settings_budget")
    page = {"form": form, "budgets": shown(request), "here": "settings", "section": "budget", "changed": changed}
    return render(request, "settings/budget.html", page, status=422 if form.is_bound else 200)


@require_POST
@signed_in
def budget_more(request: SignedInRequest, budget_id: UUID) -> HttpResponse:
    """A dollar more in this window, or as many as the button says; what waits for it goes on (mission C5)."""
    asked = request.GET.get("dollars", "")
    more = Decimal(asked) if DOLLARS.fullmatch(asked) else MORE
    try:
        allow_more(_found(request, budget_id), more)
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


def _changed(request: SignedInRequest) -> Budget | None:
    """The budget that the form is filled with: `?budget=`."""
    wanted = uuid_or_none(request.GET.get("budget", ""))
    return Budget.objects.for_user(request.user).filter(pk=wanted).first() if wanted else None


def _initial(budget: Budget | None, goals: QuerySet[Goal]) -> dict[str, object]:
    if budget is None:
        return {}
    goal = goals.filter(thread=budget.thread_id).first() if budget.thread_id else None
    amount = None if budget.money is None else dollars(budget.money)
    return {"goal": goal, "window": budget.window, "money": amount, "tokens": budget.tokens}


def _parts(budget: Budget) -> list[dict[str, object]]:
    """How much of each limit is spent; `unit` is that of the figures."""
    parts: list[dict[str, object]] = []
    if budget.money is not None:
        parts.append(_part("$", budget.spent, budget.money + budget.extra))
    if budget.tokens is not None:
        parts.append(_part("tokens", budget.spent_tokens, budget.tokens))
    return parts


def _part(unit: str, spent: Decimal | int, limit: Decimal | int) -> dict[str, object]:
    return {"unit": unit, "spent": spent, "limit": limit, "percent": _percent(spent, limit)}


def _percent(spent: Decimal | int, limit: Decimal | int) -> int:
    return round(100 * spent / limit) if limit else 100


def shown(request: SignedInRequest) -> list[dict[str, object]]:
    """Each with whose it is and how much of it is spent; those of each run have nothing to count."""
    titles = dict(Goal.objects.for_user(request.user).values_list("thread", "title"))
    titles[assistant_of(request.user).thread_id] = _("Assistant")
    budgets = current(Budget.objects.for_user(request.user).select_related("thread"), request.user)
    return [
        {
            "row": budget,
            "thread_id": budget.thread_id,
            "whose": titles.get(budget.thread_id, _("A task")) if budget.thread_id else _("All your agents"),
            "limits": words.limits_of(budget),
            "percent": round(100 * room.share_spent(budget)),
            "parts": _parts(budget),
            "goal": budget.thread_id in titles,
            "counts": budget.counts,
        }
        for budget in budgets
    ]
