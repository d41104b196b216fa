"""How much of a budget there is, and what is missing when that is not enough. Reckons with rows that others lock."""

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings

from agents.budgets import windows
from agents.budgets.models import Budget
from agents.budgets.worst import Amount

MOST = Amount(Decimal(10) ** 9, 2**60)
"""What a limit that is not set allows."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why nothing could be reserved.

    until: when the budget begins anew and is enough again; None when that does not come.
    waits: whether it is only held for other work that goes on, and may be free soon.
    left, least: what could be had of it, and what the call may come to at most.
    share: how much of the budget there is for this work.
    """

    budget: Budget
    until: datetime | None
    waits: bool
    left: Amount
    least: Amount
    share: Decimal

    @property
    def dollars(self) -> int:
        """How many dollars more are enough, rounded up."""
        return max(1, math.ceil((self.least.money - self.left.money) / self.share))

    @property
    def is_of_money(self) -> bool:
        """Whether dollars are short, which one may add."""
        return self.left.money < self.least.money and self.left.tokens >= self.least.tokens


class OutOfBudget(Exception):
    def __init__(self, shortage: Shortage) -> None:
        super().__init__(str(shortage.budget))
        self.shortage = shortage


def _share(*, attended: bool) -> Decimal:
    return Decimal(1) if attended else Decimal(str(settings.WAYMARK_BUDGET_UNATTENDED_SHARE))


def limit(budget: Budget, *, attended: bool) -> Amount:
    """How much of a budget there is for work that somebody waits for, or does not."""
    share = _share(attended=attended)
    money = MOST.money if budget.money is None else (budget.money + budget.extra) * share
    tokens = MOST.tokens if budget.tokens is None else int(budget.tokens * share)
    return Amount(money, tokens)


def free(budget: Budget, *, attended: bool) -> Amount:
    """What is neither spent nor held."""
    held = Amount(budget.reserved, budget.reserved_tokens)
    return limit(budget, attended=attended).minus(spent(budget)).minus(held)


def spent(budget: Budget) -> Amount:
    return Amount(budget.spent, budget.spent_tokens)


def share_spent(budget: Budget) -> float:
    """How much of a budget is spent, from 0 to 1 and beyond; of the limit that is nearer."""
    money = float(budget.spent / (budget.money + budget.extra)) if budget.money else 0.0
    return max(money, budget.spent_tokens / budget.tokens if budget.tokens else 0.0)


def shortage_of(budget: Budget, unbooked: Amount, least: Amount, left: Amount, *, attended: bool) -> Shortage:
    """
    Args:
        unbooked: what the run has spent that is not in the budget yet.
    """
    whole = limit(budget, attended=attended).minus(Amount(budget.extra * _share(attended=attended), 0))
    unspent = limit(budget, attended=attended).minus(spent(budget)).minus(unbooked)
    until = windows.ends(budget.window, budget.now, budget.zone) if whole.covers(least) else None
    waits = budget.counts and unspent.covers(least)
    return Shortage(budget, until, waits, left, least, _share(attended=attended))
