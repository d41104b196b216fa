"""A new budget begins: what was spent before counts, and what is at work pays into it from now on."""

from decimal import Decimal

from django.contrib.auth.models import User
from django.db.models import F, Max, Q

from agents.budgets import counting, windows
from agents.budgets.models import Budget, Reservation
from agents.lineage import threads_below
from agents.models import CallStatus, ModelCall
from memory.models import LIVE, AgentRun, Thread
from memory.pool import orm_connection


def open_budget(budget: Budget) -> None:
    """Save a budget that is new. Part of a transaction that has locked the budget's user."""
    _hold_still(budget.user)
    now, budget.zone = counting.clock(budget.user_id, orm_connection())
    counting.count(budget, windows.began(budget.window, now, budget.zone))
    budget.save()
    if budget.counts:
        _hold_too(budget)


def _hold_still(user: User) -> None:
    """Lock whatever of a user could be charged or booked, so that it is counted once, before the budget or in it.
    Budgets count every live run from here on, also one that began without any and is under way."""
    list(Thread.objects.for_user(user).select_for_update(no_key=True).order_by("-created_at", "pk").values_list("pk"))
    live = AgentRun.objects.for_user(user).filter(Q(status__in=LIVE) | Q(metered=True)).order_by("pk")
    runs = [run.pk for run in live.select_for_update(of=("self",), no_key=True)]
    uncounted = AgentRun.objects.filter(pk__in=runs, metered=False)
    uncounted.update(metered=True, booked=F("charged"), booked_tokens=F("charged_tokens"))
    beside = ModelCall.objects.filter(thread__user=user, status=CallStatus.STARTED).order_by("pk")
    list(beside.select_for_update(of=("self",), no_key=True))


def _hold_too(budget: Budget) -> None:
    """What is held elsewhere for work under the budget is held in it, too."""
    runs = AgentRun.objects.for_user(budget.user).filter(metered=True, held_tokens__gt=0)
    calls = ModelCall.objects.filter(thread__user=budget.user, reservations__isnull=False)
    if budget.thread is not None:
        below = threads_below(budget.thread.pk)
        runs, calls = runs.filter(thread__in=below), calls.filter(thread__in=below)
    held = [Reservation(budget=budget, run=run, money=run.held, tokens=run.held_tokens) for run in runs]
    for call in calls.annotate(money=Max("reservations__money"), tokens=Max("reservations__tokens")):
        held.append(Reservation(budget=budget, call=call, money=call.money, tokens=call.tokens))
    Reservation.objects.bulk_create(held)
    budget.reserved = sum((each.money for each in held), Decimal(0))
    budget.reserved_tokens = sum(each.tokens for each in held)
    budget.save(update_fields=["reserved", "reserved_tokens"])
