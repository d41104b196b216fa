"""Calls of which nobody knows what became of them, although somebody could be asked."""

from datetime import timedelta
from functools import partial, reduce
from operator import or_
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from agents.engine import bell
from agents.engine.health.finding import Finding
from tools import registry
from tools.base import Effect
from tools.models import UNRESOLVED, AgentAction

LOOKS: Final = 9
"""After the first pause of the monitor, and then after twice as long each time: within a day. Then it is its user's to
ask."""


def unknown_calls(limit: int) -> list[Finding]:
    """Calls with an unknown outcome whose run is over and whose tool can look them up: as *Check* does, but that nobody
    need press it. A tool that does not know yet is asked more and more seldom."""
    pause, now = timedelta(minutes=settings.WAYMARK_HEALTH_MINUTES), timezone.now()
    ages = [pause * 2**n for n in range(LOOKS)]
    due = reduce(or_, (Q(finished_at__gt=now - age - pause, finished_at__lte=now - age) for age in ages))
    over = AgentAction.objects.filter(UNRESOLVED, due, effect=Effect.VERIFIABLE, run__finished_at__isnull=False)
    known = over.filter(tool__in=registry.all_tools()).order_by("finished_at").values_list("pk", "user")[:limit]
    return [Finding(f"call {pk}", partial(bell.ask_for_check, pk, user, asked=False)) for pk, user in known]
