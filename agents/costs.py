"""What models cost beside the runs, which count their own calls: summaries and the like (mission C4)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.db.models import Count, Q, Sum

from agents.models import CallStatus, ModelCall


@dataclass(frozen=True, slots=True)
class Spent:
    """`cost` is the known part in US dollars; `known` is false when a call had no price."""

    cost: Decimal
    known: bool


def beside_runs(user: User, since: datetime) -> Spent:
    calls = ModelCall.objects.filter(thread__user=user, created_at__gte=since)
    unpriced = Count("pk", filter=Q(cost=None) & ~Q(status=CallStatus.STARTED))
    sums = calls.aggregate(spent=Sum("cost"), unpriced=unpriced)
    return Spent(sums["spent"] or Decimal(0), not sums["unpriced"])
