"""Reserve, book, release: each one transaction, in which the run is locked first and then its budgets in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from agents.agentable import Agentable, agentable_of
from agents.budgets import windows
from agents.budgets.models import Budget, Reservation
from agents.budgets.worst import NOTHING, Amount
from agents.models import ModelCall, UserAgent
from memory.models import AgentRun, RunStatus, Thread

PORTION = 4
"""No run takes more than this part of what is free, as long as that is enough for its call: others want some, too."""

MOST = Amount(Decimal(10) ** 9, 2**60)
"""What a limit that is not set allows."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why nothing could be reserved.

    until: when the budget's next window begins; None when it has none.
    waits: whether it is only held for other work that goes on, and may be free soon.
    """

    budget: Budget
    until: datetime | None
    waits: bool


class OutOfBudget(Exception):
    def __init__(self, shortage: Shortage) -> None:
        super().__init__(str(shortage.budget))
        self.shortage = shortage


class NotOurs(Exception):
    """The run has another worker now, or is over."""


def threads_above(agentable: Agentable) -> list[UUID]:
    """The agent's thread and those that it works for: a task's spending is its goal's, too."""
    found = [agentable.thread_id]
    while parent := agentable.reports_to():
        found.append(parent.pk)
        agentable = agentable_of(parent)
    return found


def reserve(
    run_id: UUID, token: UUID, threads: Sequence[UUID], least: Amount, full: Amount, *, attended: bool
) -> Amount:
    """Hold enough for the run's next call in every budget that it is under. May be repeated.

    Args:
        token: of the run's lease.
        least, full: what the call needs, and what would serve for some more.
        attended: whether somebody waits for it; what nobody waits for leaves a share of each budget for the rest.

    Returns:
        What the run may spend from now on: at least `least`, at most `full` more than it holds already.

    Raises:
        OutOfBudget, NotOurs.
    """
    with transaction.atomic():
        mine = AgentRun.objects.select_related("thread").filter(pk=run_id, lease_token=token)
        at_work = mine.filter(status__in=(RunStatus.RUNNING, RunStatus.CANCELLING))
        run = at_work.select_for_update(of=("self",), no_key=True).first()
        if run is None:
            raise NotOurs
        held = {each.budget_id: each for each in Reservation.objects.filter(run=run)}
        granted, shares = full, []
        for budget in _locked(run.thread, threads):
            has = held.get(budget.pk) or Reservation(budget=budget, run=run)
            can = _can(budget, run, has, attended=attended)
            if not can.covers(least):
                raise OutOfBudget(_shortage(budget, run, least, attended=attended))
            granted = Amount(
                min(granted.money, max(least.money, can.money / PORTION)),
                min(granted.tokens, max(least.tokens, can.tokens // PORTION)),
            )
            shares.append((budget, has))
        for budget, has in shares:
            _hold(budget, has, _unbooked(run), granted)
    return granted


def release(run_id: UUID) -> list[Budget]:
    """Book what a run has spent, and let go of the rest; while a worker has it, nothing happens. May be repeated.

    Returns:
        The budgets of which most is spent now, for the first time in their window.
    """
    with transaction.atomic():
        run = AgentRun.objects.select_related("thread").select_for_update(of=("self",), no_key=True).get(pk=run_id)
        if run.lease_token is not None:
            return []
        warned = _book(run.thread, _unbooked(run), list(Reservation.objects.filter(run=run)))
        run.booked, run.booked_tokens = run.charged, run.charged_tokens
        run.save(update_fields=["booked", "booked_tokens"])
    return warned


def charge_lost(run_id: UUID, token: UUID) -> None:
    """A worker died on the run, perhaps while a model answered: all that was held counts as spent."""
    with transaction.atomic():
        run = AgentRun.objects.select_for_update(no_key=True).filter(pk=run_id, lease_token=token).first()
        held = list(Reservation.objects.filter(run=run)) if run else []
        if run is None or not held:
            return
        run.charged = max(run.charged, run.booked + max(each.money for each in held))
        run.charged_tokens = max(run.charged_tokens, run.booked_tokens + max(each.tokens for each in held))
        run.save(update_fields=["charged", "charged_tokens"])


def reserve_beside(call: ModelCall, thread: Thread, worst: Amount) -> bool:
    """Hold what a call beside the runs may come to; returns whether there is a budget. Raises: OutOfBudget."""
    held = False
    with transaction.atomic():
        for budget in _locked(thread, threads_above(agentable_of(thread))):
            if not budget.counts:
                continue
            if not _room(budget, attended=False).covers(worst):
                raise OutOfBudget(_shortage(budget, None, worst, attended=False))
            _hold(budget, Reservation(budget=budget, call=call), NOTHING, worst)
            held = True
    return held


def book_beside(call: ModelCall, thread: Thread, spent: Amount | None) -> None:
    """Book such a call. None: all that was held for it. May be repeated."""
    with transaction.atomic():
        held = list(Reservation.objects.select_for_update().filter(call=call))
        if held:
            most = Amount(max(each.money for each in held), max(each.tokens for each in held))
            _book(thread, spent or most, held)


def _locked(thread: Thread, threads: Sequence[UUID]) -> list[Budget]:
    """The budgets above a thread, locked, each with the figures of the window that is now. PostgreSQL's clock says
    which that is: the worker's may be wrong, and would forget what was spent."""
    wanted = Budget.objects.filter(Q(thread=None) | Q(thread__in=threads), user_id=thread.user_id)
    budgets = list(wanted.select_for_update().order_by("pk"))
    now, zone = _now(), zone_of(thread.user_id)
    for budget in budgets:
        budget.now, budget.zone = now, zone
        budget.begin(windows.began(budget.window, now, zone))
    return budgets


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now


def zone_of(user_id: int) -> ZoneInfo:
    name = UserAgent.objects.filter(user=user_id).values_list("time_zone", flat=True).first()
    return ZoneInfo(name or "Etc/UTC")


def _unbooked(run: AgentRun) -> Amount:
    return _charged(run).minus(Amount(run.booked, run.booked_tokens))


def _charged(run: AgentRun) -> Amount:
    return Amount(run.charged, run.charged_tokens)


def _spent(budget: Budget) -> Amount:
    return Amount(budget.spent, budget.spent_tokens)


def limit(budget: Budget, *, attended: bool) -> Amount:
    """How much of a budget there is for work that somebody waits for, or does not."""
    share = Decimal(1) if attended else Decimal(str(settings.WAYMARK_BUDGET_UNATTENDED_SHARE))
    money = MOST.money if budget.money is None else (budget.money + budget.extra) * share
    tokens = MOST.tokens if budget.tokens is None else int(budget.tokens * share)
    return Amount(money, tokens)


def _room(budget: Budget, *, attended: bool) -> Amount:
    held = Amount(budget.reserved, budget.reserved_tokens)
    return limit(budget, attended=attended).minus(_spent(budget)).minus(held)


def _can(budget: Budget, run: AgentRun, has: Reservation, *, attended: bool) -> Amount:
    """What the run could spend at most under a budget."""
    if not budget.counts:
        return limit(budget, attended=True).minus(_charged(run))
    return _room(budget, attended=attended).plus(Amount(has.money, has.tokens)).minus(_unbooked(run))


def _hold(budget: Budget, has: Reservation, unbooked: Amount, granted: Amount) -> None:
    if not budget.counts:
        return
    wanted = unbooked.plus(granted)
    money, tokens = max(has.money, wanted.money), max(has.tokens, wanted.tokens)
    budget.reserved += money - has.money
    budget.reserved_tokens += tokens - has.tokens
    has.money, has.tokens = money, tokens
    budget.save()
    has.save()


def _book(thread: Thread, spent: Amount, held: Sequence[Reservation]) -> list[Budget]:
    by_budget = {each.budget_id: each for each in held}
    most_is_spent = []
    for budget in _locked(thread, threads_above(agentable_of(thread))):
        if not budget.counts:
            continue
        if (has := by_budget.get(budget.pk)) is not None:
            budget.reserved -= has.money
            budget.reserved_tokens -= has.tokens
        budget.spent += spent.money
        budget.spent_tokens += spent.tokens
        if budget.warned_at is None and share_spent(budget) >= settings.WAYMARK_BUDGET_WARN_SHARE:
            budget.warned_at = budget.now
            most_is_spent.append(budget)
        budget.save()
    Reservation.objects.filter(pk__in=[each.pk for each in held]).delete()
    return most_is_spent


def share_spent(budget: Budget) -> float:
    """How much of a budget is spent, from 0 to 1 and beyond; of the limit that is nearer."""
    money = float(budget.spent / (budget.money + budget.extra)) if budget.money else 0.0
    return max(money, budget.spent_tokens / budget.tokens if budget.tokens else 0.0)


def _shortage(budget: Budget, run: AgentRun | None, least: Amount, *, attended: bool) -> Shortage:
    unbooked = _unbooked(run) if run else NOTHING
    unspent = limit(budget, attended=attended).minus(_spent(budget)).minus(unbooked)
    until = windows.ends(budget.window, budget.now, budget.zone)
    return Shortage(budget, until, waits=budget.counts and unspent.covers(least))
