"""What people do with their budgets. Every change lets those that wait for it go on."""

from collections.abc import Iterable
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.budgets import counting, ledger
from agents.budgets.models import MOST_DOLLARS, Budget, Window
from agents.budgets.opening import open_budget
from agents.engine.waits import end_waits_for_budgets
from agents.refusals import Refused
from memory.models import Thread

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
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        found = ledger.locked(user.pk, Q(thread=thread, window=window))
        budget = found[0] if found else Budget(user=user, thread=thread, window=window)
        budget.money, budget.tokens, budget.extra, budget.warned_at = money, tokens, Decimal(0), None
        if found:
            budget.save()
        else:
            open_budget(budget)
    end_waits_for_budgets(user)
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

    Args:
        dollars: US dollars.

    Raises:
        Refused: it has no window, or no limit in dollars.
    """
    if not budget.takes_more:
        raise Refused("not_possible", "Nothing can be added to this budget. Raise its limit instead.")
    with transaction.atomic():
        for now in ledger.locked(budget.user_id, Q(pk=budget.pk)):
            now.extra, now.warned_at = min(now.extra + dollars, Decimal(MOST_DOLLARS)), None
            now.save()
    end_waits_for_budgets(budget.user)


def remove_budget(budget: Budget) -> None:
    user = budget.user
    with transaction.atomic():
        for found in ledger.locked(user.pk, Q(pk=budget.pk)):
            found.delete()
    end_waits_for_budgets(user)


def current(budgets: Iterable[Budget], user: User) -> list[Budget]:
    """Show budgets of a user with the figures of the window that is now, which their rows have from the next booking
    on."""
    now, zone, shown = timezone.now(), counting.zone_of(user.pk), list(budgets)
    for budget in shown:
        counting.bring_up_to_date(budget, now, zone)
    return shown
