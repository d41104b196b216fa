"""What a run carries with it to pay for its calls."""

import time
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings

from agents.budgets import ledger
from agents.budgets.ledger import NotOurs
from agents.budgets.models import Budget
from agents.budgets.room import OutOfBudget
from agents.budgets.worst import NOTHING, Amount, Counted, answer_at_most, cost_at_most, output_within
from agents.engine.journal.rows import Lease, LeaseLost
from agents.engine.journal.surely import surely
from agents.providers.base import ModelRequest, Price, ProviderError, Reply, Trouble, Usage
from agents.providers.capabilities import Capabilities
from memory.pool import orm
from tools.cancel import CancelToken

AHEAD: Final = Decimal("1.5")
"""How many of its worst calls a run reserves at once. Most cost a fraction of that, so it seldom has to come again."""

LOOK_AGAIN: Final = 1.0
"""Seconds after which a run that waits for what others have reserved looks again."""


class Unpriced(Exception):
    """There is a budget in dollars, and nobody knows what the model costs (case COS-03 a)."""


@dataclass(slots=True)
class Purse:
    """
    can: how long the model's window and its answers are, as far as that is known.
    attended: whether somebody waits for the run.
    left: what is reserved and not spent. open: the worst of the call that is under way.
    """

    lease: Lease
    model: str
    price: Price | None
    can: Capabilities
    attended: bool
    cancel: CancelToken
    left: Amount = NOTHING
    open: Amount = NOTHING
    counted: Counted = field(default_factory=Counted)
    _before: Amount = NOTHING
    _asked: int = 0
    _is_limited: bool = False
    _is_brief: bool = False

    def admit(self, request: ModelRequest) -> ModelRequest:
        """Make sure that the request can be paid for whatever comes of it; its output is limited accordingly.

        Raises:
            OutOfBudget: it cannot.
            Unpriced, LeaseLost.
        """
        least, given = settings.WAYMARK_LEAST_OUTPUT_TOKENS, self.counted.given(request)
        allowed = least if self._is_brief else settings.WAYMARK_MOST_OUTPUT_TOKENS
        most = answer_at_most(self.can, given, allowed, least)
        full = cost_at_most(self.price, given.most, most)
        if not self.left.covers(full):
            needed = cost_at_most(self.price, given.most, min(most, least))
            self._reserve(needed, Amount(full.money * AHEAD, int(full.tokens * AHEAD)))
        self._asked = min(most, output_within(self.price, given.most, self.left))
        self.open, self._before = cost_at_most(self.price, given.most, self._asked), self.left
        self.left = self._before.minus(self.open)
        return replace(request, max_output_tokens=self._asked)

    def ask_less(self, error: ProviderError) -> bool:
        """After a refusal: whether the same may be sent again with less room for its answer, because only that may have
        been too much. Once for each of two reasons: it is more than the server allows, which it then is not asked for
        again, or more than the conversation leaves."""
        least, before = settings.WAYMARK_LEAST_OUTPUT_TOKENS, self._is_limited
        if error.trouble is Trouble.ANSWER_LIMIT:
            limit = error.longest or least
            self.can, self._is_limited = replace(self.can, output_limit=limit), True
            return limit < self._asked and not before
        if error.trouble is Trouble.TOO_LONG:
            self._is_brief = self._asked > least
            return self._is_brief
        return False

    def replied(self, request: ModelRequest, reply: Reply) -> None:
        self.open = NOTHING
        self.counted.replied(request, reply)
        if self.can.context_length:
            self._is_brief = False

    def charge(self, usage: Usage, cost: Decimal | None, error: ProviderError | None) -> Amount:
        """Return what the budgets count for a call, and keep what it leaves. Of one whose cost nobody knows that is its
        worst, unless the server has said no to it."""
        unknown = NOTHING if error and error.is_denial else self.open
        known = usage.input_tokens is not None and usage.output_tokens is not None
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if known else unknown.tokens
        charged = Amount(unknown.money if cost is None else cost, tokens)
        self.left = self._before.minus(charged)
        return charged

    def change(self, model: str, price: Price | None, can: Capabilities) -> None:
        """Another model answers from now on: what is held was reckoned for the first, so it is reserved anew, and what
        that one has counted says nothing of this one's tokens."""
        self.model, self.price, self.can = model, price, can
        self._is_limited = self._is_brief = False
        self.left = self.open = self._before = NOTHING
        self.counted = Counted()

    def _reserve(self, least: Amount, full: Amount) -> None:
        if self.price is None:
            with orm():
                if forbids_unpriced(self.lease.user_id, self.lease.thread_id):
                    raise Unpriced(self.model)
        until = time.monotonic() + settings.WAYMARK_BUDGET_PATIENCE_SECONDS
        while True:
            try:
                reserve = partial(ledger.reserve, self.lease, least, full, attended=self.attended)
                self.left = surely(reserve, lambda: None)
            except OutOfBudget as out:
                if not out.shortage.waits or time.monotonic() >= until:
                    raise
            except NotOurs:
                raise LeaseLost from None
            else:
                return
            self.cancel.sleep(LOOK_AGAIN)


def forbids_unpriced(user_id: int, thread_id: UUID) -> bool:
    """Whether a model without a price may not be asked in a thread: a budget in dollars could not hold."""
    if settings.WAYMARK_BUDGET_UNPRICED != "block":
        return False
    return Budget.objects.filter(ledger.above(thread_id), user=user_id, money__isnull=False).exists()
