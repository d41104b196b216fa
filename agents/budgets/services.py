"""What people do with their budgets. Every change lets those that wait for it go on."""

from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.budgets import windows
from agents.budgets.ledger import zone_of
from agents.budgets.models import Budget, Window
from agents.budgets.worst import NOTHING, Amount
from agents.models import AgentTask, ModelCall
from agents.refusals import Refused
from agents.services import retry_now
from memory.models import AgentRun, RunStatus, Thread

MORE = Decimal(1)
"""US dollars that one press adds."""


def set_budget(
    user: User, window: str, money: Decimal | None, tokens: int | None, thread: Thread | None = None
) -> Budget:
    """Set how much may be spent in a window, by all of a user's agents or below one thread. What was spent in it before
    counts. Raises: ValueError without any limit."""
    if money is None and tokens is None:
        raise ValueError("a budget needs a limit in dollars or in tokens")
    with transaction.atomic():
        budget, is_new = Budget.objects.select_for_update().get_or_create(
            user=user, thread=thread, window=window, defaults={"money": money, "tokens": tokens}
        )
        budget.money, budget.tokens, budget.warned_at = money, tokens, None
        if is_new:
            _count_what_was(budget)
        budget.save()
    let_wait_end(user)
    return budget


def monthly_budget(user: User) -> Budget | None:
    """The budget of all that a user's agents do in a month."""
    return Budget.objects.for_user(user).filter(thread=None, window=Window.MONTH).first()


def limit_month(user: User, money: Decimal | None) -> None:
    """Set how many US dollars all of a user's agents may spend in a month; None lifts that, and leaves a limit of
    tokens."""
    budget = monthly_budget(user)
    tokens = budget.tokens if budget else None
    if money is not None or tokens is not None:
        set_budget(user, Window.MONTH, money, tokens)
    elif budget:
        remove_budget(budget)


def allow_more(budget: Budget, dollars: Decimal = MORE) -> None:
    """Add to a budget for its present window only (mission C5 "+$1").

    Raises:
        Refused: it has no window, or no limit in dollars.
    """
    if not budget.takes_more:
        raise Refused("not_possible", "Nothing can be added to this budget. Raise its limit instead.")
    with transaction.atomic():
        Budget.objects.select_for_update().filter(pk=budget.pk).update(extra=F("extra") + dollars, warned_at=None)
    let_wait_end(budget.user)


def remove_budget(budget: Budget) -> None:
    user = budget.user
    budget.delete()
    let_wait_end(user)


def current(budget: Budget) -> Budget:
    """Show a budget with the figures of the window that is now, which its row has from the next booking on."""
    budget.begin(windows.began(budget.window, timezone.now(), zone_of(budget.user_id)))
    return budget


def let_wait_end(user: User) -> None:
    """Runs that wait for a budget try again, with the step at which they stopped."""
    waiting = AgentRun.objects.for_user(user).filter(status=RunStatus.WAITING_BUDGET).select_related("thread")
    for run in waiting:
        retry_now(run)


def _count_what_was(budget: Budget) -> None:
    """What the window has cost before there was a budget. Runs at work are counted up to now, and booked from here."""
    now = timezone.now()
    budget.begins = windows.began(budget.window, now, zone_of(budget.user_id))
    budget.spent, budget.spent_tokens = _spent(budget)
    AgentRun.objects.for_user(budget.user).live().update(booked=F("charged"), booked_tokens=F("charged_tokens"))


def _spent(budget: Budget) -> Amount:
    if not budget.counts:
        return NOTHING
    calls = ModelCall.objects.filter(Q(run__thread__user=budget.user) | Q(thread__user=budget.user))
    if budget.thread is not None:
        below = _threads_below(budget.thread)
        calls = calls.filter(Q(run__thread__in=below) | Q(thread__in=below))
    if budget.begins is not None:
        calls = calls.filter(created_at__gte=budget.begins)
    sums = calls.aggregate(
        money=Coalesce(Sum("cost"), Decimal(0)),
        tokens=Coalesce(Sum("input_tokens"), 0) + Coalesce(Sum("output_tokens"), 0),
    )
    return Amount(sums["money"], sums["tokens"])


def _threads_below(thread: Thread) -> list[Thread]:
    """A thread and those of the tasks that were sent off from it, however far down."""
    found, newest = [thread], [thread]
    while newest:
        newest = [task.thread for task in AgentTask.objects.filter(parent__in=newest).select_related("thread")]
        found += newest
    return found
