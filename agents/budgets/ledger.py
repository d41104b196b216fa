"""Reserve, book, release: each one transaction, in which the run is locked first and then its budgets in order."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from psycopg import Connection

from agents.budgets import books, counting
from agents.budgets.books import Account, Payer
from agents.budgets.models import Budget
from agents.budgets.room import OutOfBudget, free, limit, share_spent, shortage_of
from agents.budgets.worst import NOTHING, Amount, charged
from agents.engine.journal.rows import Lease
from agents.lineage import threads_above
from agents.models import CallStatus, ModelCall
from agents.providers.base import Usage
from memory import pool
from memory.models import AgentRun, Thread

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


def reserve(lease: Lease, least: Amount, full: Amount, *, attended: bool) -> Amount:
    """Hold enough for the run's next call in every budget that it is under. May be repeated.

    Args:
        least, full: what the call needs, and what would serve for some more.
        attended: whether somebody waits for it; what nobody waits for leaves a share of each budget for the rest.

    Returns:
        What the run may spend from now on: at least `least`, at most `full` more than it holds already.

    Raises:
        OutOfBudget, NotOurs.
    """
    with pool.transaction() as on:
        if (run := books.at_work(lease, on)) is None:
            raise NotOurs
        granted, accounts = full, books.accounts_of(run, on)
        for account in accounts:
            can = _can(account, run, attended=attended)
            if not can.covers(least):
                raise OutOfBudget(shortage_of(account.budget, run.unbooked, least, can, attended=attended))
            granted = Amount(
                min(granted.money, max(least.money, can.money / PORTION)),
                min(granted.tokens, max(least.tokens, can.tokens // PORTION)),
            )
        books.hold(run, accounts, run.unbooked.plus(granted), on)
    return granted


def release(run_id: UUID) -> bool:
    """Book what a run has spent, and let go of the rest; while a worker has it, nothing happens. May be repeated.

    Returns:
        Whether there may be something in `nearly_spent`.
    """
    with pool.transaction() as on:
        run = books.left(run_id, on)
        return run is not None and _release(run, on)


def nearly_spent(thread: Thread) -> list[Budget]:
    """The budgets above a thread, locked, of which most is spent and whose user has not been told in this window."""
    return [budget for budget in locked(thread.user_id, above(thread.pk)) if _is_nearly_spent(budget)]


def _is_nearly_spent(budget: Budget) -> bool:
    """And nobody was told."""
    return budget.counts and budget.warned_at is None and share_spent(budget) >= settings.WAYMARK_BUDGET_WARN_SHARE


def _release(run: Payer, on: Connection[Any]) -> bool:
    accounts = books.accounts_of(run, on)
    books.book(run, accounts, run.unbooked, on)
    return any(_is_nearly_spent(account.budget) for account in accounts)


def release_all(threads: Sequence[UUID]) -> None:
    """Book what the runs of threads have spent that are about to be deleted, and the calls beside them, whoever has
    them; what is open at its worst. Part of the deletion's transaction."""
    on = pool.orm_connection()
    runs = books.metered(threads, on)
    beside = ModelCall.objects.filter(thread__in=threads, status=CallStatus.STARTED).order_by("pk")
    for call in list(beside.select_for_update(no_key=True)):
        lose_beside(call)
    for run in runs:
        _release(_lost(run), on)


def _lost(run: Payer) -> Payer:
    """A locked run whose open call counts at its worst, if it has one."""
    assert run.run_id is not None, "it is no call beside the runs"
    most = run.charged.at_least(run.booked.plus(run.held))
    lost = most.minus(run.charged)
    open_calls = ModelCall.objects.filter(run=run.run_id, status=CallStatus.STARTED)
    if not open_calls.update(charged=lost.money, charged_tokens=lost.tokens):
        return run
    AgentRun.objects.filter(pk=run.run_id).update(charged=most.money, charged_tokens=most.tokens)
    return run._replace(charged=most)


def reserve_beside(call: ModelCall, thread: Thread, worst: Amount) -> bool:
    """Hold what a call beside the runs may come to; returns whether there is a budget. Raises: OutOfBudget."""
    payer = Payer(thread.pk, thread.user_id, call_id=call.pk)
    with pool.transaction() as on:
        accounts = books.that_count(books.accounts_of(payer, on))
        for account in accounts:
            if not (left := free(account.budget, attended=False)).covers(worst):
                raise OutOfBudget(shortage_of(account.budget, NOTHING, worst, left, attended=False))
        books.hold(payer, accounts, worst, on)
    return bool(accounts)


def settle_beside(call: ModelCall, spent: Amount | None) -> bool:
    """Save what a call beside the runs came to, with its end, and book it: `spent`, or all that was held for it. False:
    that was done before."""
    with transaction.atomic():
        mine = ModelCall.objects.select_related("thread").select_for_update(of=("self",), no_key=True)
        before = mine.filter(pk=call.pk).first()
        if before is None or before.thread is None:
            return False
        payer = Payer(before.thread.pk, before.thread.user_id, call_id=call.pk)
        accounts = books.accounts_of(payer, pool.orm_connection())
        held = NOTHING
        for account in accounts:
            held = held.at_least(account.held)
        if before.status != CallStatus.STARTED and held == NOTHING:
            return False
        call.charged, call.charged_tokens = held if spent is None else spent
        call.save(update_fields=BESIDE)
        books.book(payer, accounts, Amount(call.charged, call.charged_tokens), pool.orm_connection())
    return True


def lose_beside(call: ModelCall) -> None:
    """Whoever made a call beside the runs will not tell what came of it: it is settled at its worst."""
    if call.status == CallStatus.STARTED:
        call.status, call.error, call.finished_at = CallStatus.FAILED, CRASHED, Now()
    used = Usage(call.input_tokens, call.output_tokens)
    settle_beside(call, None if call.cost is None else charged(used, call.cost))


def locked(user_id: int, which: Q) -> list[Budget]:
    """Budgets of a user, locked, each with the figures of the window that is now."""
    budgets = list(Budget.objects.filter(which, user_id=user_id).select_for_update().order_by("pk"))
    now, zone = counting.clock(user_id, pool.orm_connection())
    for budget in budgets:
        counting.bring_up_to_date(budget, now, zone)
    return budgets


def above(thread_id: UUID) -> Q:
    """Which budgets hold what is done in a thread: a task's spending is its goal's, too."""
    return Q(thread=None) | Q(thread__in=threads_above(thread_id))


def _can(account: Account, run: Payer, *, attended: bool) -> Amount:
    """What the run could spend at most under a budget."""
    if not account.budget.counts:
        return limit(account.budget, attended=True).minus(run.charged)
    return free(account.budget, attended=attended).plus(account.held).minus(run.unbooked)


def has_changed(seen: Budget) -> bool:
    """Whether a budget allows something else by now, or is gone, since it was seen."""
    now = Budget.objects.filter(pk=seen.pk).values_list("money", "tokens", "extra").first()
    return now != (seen.money, seen.tokens, seen.extra)
