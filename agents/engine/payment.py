"""How a run pays: its purse, and what becomes of it when the run lets go (docs/reliability.md, invariant I17)."""

from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from agents.budgets import ledger, room, words
from agents.budgets.purse import Purse, Unpriced, forbids_unpriced
from agents.budgets.worst import AROUND_EACH, Given, answer_at_most, charged, cost_at_most
from agents.connections import Choice
from agents.engine.assemble import Summons
from agents.engine.cells import text_cell
from agents.engine.journal import surely
from agents.engine.leases import Held
from agents.engine.notices import locked, write
from agents.live.announce import announce_message
from agents.models import CallStatus, ModelCall
from agents.prices import prices_of
from agents.providers.base import Usage
from memory.metadata import MessageMetadata
from memory.models import AgentRun, RunStatus, Source, Thread
from memory.pool import DATABASE_AWAY, orm

log = structlog.get_logger(__name__)

BESIDE_OUTPUT = 4_000
"""Tokens of a summary or the like."""

PATIENCE = 1.25
"""A call beside the runs is over for certain after so many times the longest that a summary may take."""

SWEPT = 100
"""Runs that are looked after in one sweep, and calls beside them."""


def purse_of(summons: Summons, held: Held) -> Purse:
    """The purse of a claimed run that budgets count, from the first call of its model or from a later one on."""
    choice = summons.choice
    price = summons.prices.of(choice.endpoint, choice.model)
    can, attended = choice.capabilities, summons.is_attended
    return Purse(held.lease, choice.model, price, can, attended, held.cancel)


def beside_seconds() -> float:
    """After how long a call beside the runs is over for certain: who is late gives up before."""
    allowed: float = settings.WAYMARK_SUMMARY_SECONDS
    return allowed * PATIENCE


def let_go(run_id: UUID) -> None:
    """Book what a run has spent and free what it held, once no worker has it. What cannot be booked now is left to the
    next sweep."""
    try:
        if surely(partial(ledger.release, run_id), lambda: None):
            with orm():
                _warn(run_id)
    except DATABASE_AWAY as error:
        log.warning("reservations are left to the sweeper", run=str(run_id), error=str(error))
    except Exception:
        log.exception("a run cannot be booked", run=str(run_id))


def reserve_beside(call: ModelCall, choice: Choice, words_given: str) -> int | None:
    """Hold what a call beside the runs may cost at most (a summary). Returns the output that is paid for, in tokens;
    None when there is no budget and so no limit. Raises: OutOfBudget, Unpriced."""
    given = Given(0, len(words_given.encode()) + 2 * AROUND_EACH)
    most = answer_at_most(choice.capabilities, given, BESIDE_OUTPUT, settings.WAYMARK_LEAST_OUTPUT_TOKENS)
    with orm():
        thread = _thread(call)
        price = prices_of(thread.user_id).of(choice.endpoint, choice.model)
        if price is None and forbids_unpriced(thread.user_id, thread.pk):
            raise Unpriced(call.model)
    return most if ledger.reserve_beside(call, thread, cost_at_most(price, given.most, most)) else None


def settle_beside(call: ModelCall, *, is_denial: bool = False) -> None:
    """Save and book a call beside the runs that has ended; one of unknown cost at its worst, unless the server has
    said no."""
    used = Usage(call.input_tokens, call.output_tokens)
    is_unknown = call.cost is None and not is_denial
    with orm():
        ledger.settle_beside(call, None if is_unknown else charged(used, call.cost))


def _thread(call: ModelCall) -> Thread:
    assert call.thread is not None, "it is beside the runs"
    return call.thread


def sweep() -> None:
    """Book what no worker will, whatever became of those who should have done it."""
    left = AgentRun.objects.filter(metered=True, lease_token=None)
    for run_id in left.values_list("pk", flat=True)[:SWEPT]:
        let_go(run_id)
    over = ~Q(status=CallStatus.STARTED) | Q(created_at__lt=Now() - timedelta(seconds=beside_seconds()))
    for call in ModelCall.objects.filter(over, reservations__isnull=False).distinct()[:SWEPT]:
        try:
            ledger.lose_beside(call)
        except DATABASE_AWAY:
            raise
        except Exception:  # the figures of one user must not end the books of all
            log.exception("a call cannot be booked", call=str(call.pk))


def _warn(run_id: UUID) -> None:
    """Say in the chat that most of a budget is spent, once in its window. What could not be said now, the next run that
    pays says."""
    run = AgentRun.objects.select_related("thread").filter(pk=run_id).first()
    if run is None or run.status == RunStatus.WAITING_BUDGET:  # it says so itself
        return
    with locked(run.thread_id):
        for budget in ledger.nearly_spent(run.thread):
            text = words.most_is_spent(budget, room.share_spent(budget))
            cell = text_cell(Source.ERROR, text, MessageMetadata(budget=budget.pk))
            (message,) = write(run.thread_id, run_id, [cell])
            budget.warned_at = budget.now
            budget.save(update_fields=["warned_at"])
            transaction.on_commit(partial(announce_message, message, budget.user_id))
