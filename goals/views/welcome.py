"""The first run: account (done), model, first goal. Every step can be skipped."""

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.budgets.services import limit_month, monthly_budget
from agents.connections import default_connection
from agents.outside import waits_outside
from agents.providers.pricing import dollars
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from goals.connection_forms import ConnectionForm
from goals.forms import GoalForm, MonthlyLimitForm
from goals.preferences import adopt_time_zone, finish_welcome
from goals.views.goals import created
from goals.views.models import choices, connect


@require_http_methods(["GET", "POST"])
@signed_in
@waits_outside
def welcome(request: SignedInRequest) -> HttpResponse:
    adopt_time_zone(assistant_of(request.user), request.POST.get("time_zone", ""))
    form, used = ConnectionForm(request.user, request.POST or None), default_connection(request.user.pk)
    limit = MonthlyLimitForm(request.POST or None, initial=_limit(request.user) if used else None)
    if request.method == "POST" and limit.is_valid() and connect(request, form):
        limit_month(request.user, limit.cleaned_data["monthly"])
        return redirect("welcome_goal")
    page = {"form": form, "limit": limit, "step": "model", **choices(form, used)}
    return render(request, "welcome/model.html", page, status=422 if form.is_bound else 200)


def _limit(user: User) -> dict[str, str]:
    """What is set already, for whoever comes back."""
    budget = monthly_budget(user)
    return {"monthly": dollars(budget.money) if budget and budget.money is not None else ""}


@require_http_methods(["GET", "POST"])
@signed_in
def welcome_goal(request: SignedInRequest) -> HttpResponse:
    form = GoalForm(request.POST or None)
    if goal := created(request, form):
        finish_welcome(assistant_of(request.user))
        return redirect("goal", goal.pk)
    page = {"form": form, "step": "goal", "suggestions": suggestions()}
    return render(request, "welcome/goal.html", page, status=422 if form.is_bound else 200)


def suggestions() -> list[str]:
    return [
        _("Run a half marathon in May"),
        _("Move to a smaller flat"),
        _("Learn enough Spanish for a holiday"),
        _("Write down the family recipes"),
    ]


@require_POST
@signed_in
def welcome_skip(request: SignedInRequest) -> HttpResponse:
    assistant = assistant_of(request.user)
    adopt_time_zone(assistant, request.POST.get("time_zone", ""))
    finish_welcome(assistant)
    return redirect("home")
