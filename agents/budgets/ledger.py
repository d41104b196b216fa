"""Reserve, book, release: each one transaction, in which the run is locked first and then its budgets in order."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from agents.agentable import Agentable, agentable_of
from agents.budgets import counting
from agents.budgets.models import Budget, Reservation
from agents.budgets.room import OutOfBudget, free, limit, share_spent, shortage_of
from agents.budgets.worst import NOTHING, Amount, charged
from agents.models import CallStatus, ModelCall
from agents.providers.base import Usage
from memory.models import AgentRun, RunStatus, Thread

PORTION = 4
"""No run takes more than this part of what is free, as long as that is enough for its call: others want some, too."""

BESIDE = (
    *("status", "error", "finished_at", "input_tokens", "output_tokens", "cached_tokens", "written_tokens"),
    *("estimated", "answered_by", "latency_ms", "cost", "charged", "charged_tokens"),
)
"""What is saved when a call beside the runs ends. Whose it is may have changed meanwhile."""

CRASHED = "The worker ended before an answer was recorded."


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
                raise OutOfBudget(shortage_of(budget, _unbooked(run), least, can, attended=attended))
            granted = Amount(
                min(granted.money, max(least.money, can.money / PORTION)),
                min(granted.tokens, max(least.tokens, can.tokens // PORTION)),
            )
            shares.append((budget, has))
        wanted = _unbooked(run).plus(granted)
        for budget, has in shares:
            _hold(budget, has, wanted)
        run.held, run.held_tokens = max(run.held, wanted.money), max(run.held_tokens, wanted.tokens)
        run.save(update_fields=["held", "held_tokens"])
    return granted


def release(run_id: UUID) -> bool:
    """Book what a run has spent, and let go of the rest; while a worker has it, nothing happens. May be repeated.

    Returns:
        Whether there may be something in `nearly_spent`.
    """
    with transaction.atomic():
        metered = AgentRun.objects.select_related("thread").filter(pk=run_id, metered=True)
        run = metered.select_for_update(of=("self",), no_key=True).first()
        return run is not None and run.lease_token is None and _release(run)


def nearly_spent(thread: Thread) -> list[Budget]:
    """The budgets above a thread, locked, of which most is spent and whose user has not been told in this window."""
    return [budget for budget in _locked(thread, threads_above(agentable_of(thread))) if _is_nearly_spent(budget)]


def _is_nearly_spent(budget: Budget) -> bool:
    """And nobody was told."""
    return budget.counts and budget.warned_at is None and share_spent(budget) >= settings.WAYMARK_BUDGET_WARN_SHARE


def _release(run: AgentRun) -> bool:
    warns = _book(run.thread, _unbooked(run), list(Reservation.objects.filter(run=run)))
    run.booked, run.booked_tokens = run.charged, run.charged_tokens
    run.held, run.held_tokens, run.metered = Decimal(0), 0, False
    run.save(update_fields=["booked", "booked_tokens", "held", "held_tokens", "metered"])
    return warns


def release_all(threads: Sequence[UUID]) -> None:
    """Book what the runs of threads have spent that are about to be deleted, and the calls beside them, whoever has
    them; what is open at its worst. Part of the deletion's transaction."""
    runs = AgentRun.objects.select_related("thread").filter(thread__in=threads, metered=True).order_by("pk")
    at_work = list(runs.select_for_update(of=("self",), no_key=True))
    beside = ModelCall.objects.filter(thread__in=threads, status=CallStatus.STARTED).order_by("pk")
    for call in list(beside.select_for_update(no_key=True)):
        lose_beside(call)
    for run in at_work:
        most = Amount(run.booked + run.held, run.booked_tokens + run.held_tokens)
        lost = Amount(max(run.charged, most.money), max(run.charged_tokens, most.tokens)).minus(_charged(run))
        open_calls = ModelCall.objects.filter(run=run, status=CallStatus.STARTED)
        if open_calls.update(charged=lost.money, charged_tokens=lost.tokens):
            run.charged, run.charged_tokens = _charged(run).plus(lost)
            run.save(update_fields=["charged", "charged_tokens"])
        _release(run)


def reserve_beside(call: ModelCall, thread: Thread, worst: Amount) -> bool:
    """Hold what a call beside the runs may come to; returns whether there is a budget. Raises: OutOfBudget."""
    held = False
    with transaction.atomic():
        for budget in _locked(thread, threads_above(agentable_of(thread))):
            if not budget.counts:
                continue
            if not (left := free(budget, attended=False)).covers(worst):
                raise OutOfBudget(shortage_of(budget, NOTHING, worst, left, attended=False))
            _hold(budget, Reservation(budget=budget, call=call), worst)
            held = True
    return held


def settle_beside(call: ModelCall, spent: Amount | None) -> bool:
    """Save what a call beside the runs came to, with its end, and book it: `spent`, or all that was held for it. False:
    that was done before."""
    with transaction.atomic():
        mine = ModelCall.objects.select_related("thread").select_for_update(of=("self",), no_key=True)
        before = mine.filter(pk=call.pk).first()
        held = list(Reservation.objects.filter(call=call))
        if before is None or before.thread is None or (before.status != CallStatus.STARTED and not held):
            return False
        if spent is None:
            spent = Amount(max((h.money for h in held), default=Decimal(0)), max((h.tokens for h in held), default=0))
        call.charged, call.charged_tokens = spent
        call.save(update_fields=BESIDE)
        _book(before.thread, spent, held)
    return True


def lose_beside(call: ModelCall) -> None:
    """Whoever made a call beside the runs will not tell what came of it: it is settled at its worst."""
    if call.status == CallStatus.STARTED:
        call.status, call.error, call.finished_at = CallStatus.FAILED, CRASHED, now_there()
    used = Usage(call.input_tokens, call.output_tokens)
    settle_beside(call, None if call.cost is None else charged(used, call.cost))


def locked(user_id: int, which: Q) -> list[Budget]:
    """Budgets of a user, locked, each with the figures of the window that is now. PostgreSQL's clock says which that
    is: the worker's may be wrong, and would forget what was spent."""
    budgets = list(Budget.objects.filter(which, user_id=user_id).select_for_update().order_by("pk"))
    now, zone = now_there(), counting.zone_of(user_id)
    for budget in budgets:
        counting.bring_up_to_date(budget, now, zone)
    return budgets


def _locked(thread: Thread, threads: Sequence[UUID]) -> list[Budget]:
    """The budgets above a thread."""
    return locked(thread.user_id, above(threads))


def above(threads: Sequence[UUID]) -> Q:
    """Which budgets hold what is done in the first of these threads, of which each works for the next."""
    return Q(thread=None) | Q(thread__in=threads)


def now_there() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    assert isinstance(now, datetime)
    return now


def _unbooked(run: AgentRun) -> Amount:
    return _charged(run).minus(Amount(run.booked, run.booked_tokens))


def _charged(run: AgentRun) -> Amount:
    return Amount(run.charged, run.charged_tokens)


def _can(budget: Budget, run: AgentRun, has: Reservation, *, attended: bool) -> Amount:
    """What the run could spend at most under a budget."""
    if not budget.counts:
        return limit(budget, attended=True).minus(_charged(run))
    return free(budget, attended=attended).plus(Amount(has.money, has.tokens)).minus(_unbooked(run))


def _hold(budget: Budget, has: Reservation, wanted: Amount) -> None:
    if not budget.counts:
        return
    money, tokens = max(has.money, wanted.money), max(has.tokens, wanted.tokens)
    budget.reserved += money - has.money
    budget.reserved_tokens += tokens - has.tokens
    has.money, has.tokens = money, tokens
    budget.save()
    has.save()


def _book(thread: Thread, spent: Amount, held: Sequence[Reservation]) -> bool:
    """Returns whether most of a budget is spent, and nobody was told."""
    by_budget, warns = {each.budget_id: each for each in held}, False
    for budget in _locked(thread, threads_above(agentable_of(thread))):
        if not budget.counts:
            continue
        if (has := by_budget.get(budget.pk)) is not None:
            budget.reserved -= has.money
            budget.reserved_tokens -= has.tokens
        budget.spent += spent.money
        budget.spent_tokens += spent.tokens
        warns |= _is_nearly_spent(budget)
        budget.save()
    Reservation.objects.filter(pk__in=[each.pk for each in held]).delete()
    return warns


def has_changed(seen: Budget) -> bool:
    """Whether a budget allows something else by now, or is gone, since it was seen."""
    now = Budget.objects.filter(pk=seen.pk).values_list("money", "tokens", "extra").first()
    return now != (seen.money, seen.tokens, seen.extra)
