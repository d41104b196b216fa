"""What budgets say they hold."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import DecimalField, F, Q, Sum
from django.db.models.functions import Coalesce

from agents.budgets.models import Budget, Reservation
from agents.engine.health.finding import Finding


def wrong_budgets(limit: int) -> list[Finding]:
    """Budgets that hold something other than their reservations do: those of a goal that was deleted while it was at
    work are gone with it."""
    held = Budget.objects.annotate(
        money_held=Coalesce(Sum("reservations__money"), F("reserved") * 0),
        tokens_held=Coalesce(Sum("reservations__tokens"), 0, output_field=DecimalField()),
    )
    is_right = Q(reserved=F("money_held"), reserved_tokens=F("tokens_held"))
    found = held.filter(~is_right).order_by("created_at")[:limit]
    return [Finding(f"budget {budget.pk}", partial(_recount, budget.pk)) for budget in found]


def _recount(budget_id: UUID) -> bool:
    """Locked first and counted then."""
    with transaction.atomic():
        budget = Budget.objects.select_for_update().filter(pk=budget_id).first()
        if budget is None:
            return False
        held = Reservation.objects.filter(budget=budget).aggregate(money=Sum("money"), tokens=Sum("tokens"))
        money, tokens = held["money"] or 0, held["tokens"] or 0
        if (budget.reserved, budget.reserved_tokens) == (money, tokens):
            return False
        Budget.objects.filter(pk=budget_id).update(reserved=money, reserved_tokens=tokens)
    return True
