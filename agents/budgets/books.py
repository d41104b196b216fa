"""The rows of the books: each function is one statement, or one for each lock that must come before the next.

The order of the locks is that of all that is written (docs/reliability.md): the run, then its budgets by their ids. A
statement that waits for a lock sees all other rows as they were before, so nothing is read beside a lock that whoever
held it may have changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from agents.budgets import counting
from agents.budgets.models import Budget
from agents.budgets.worst import Amount
from agents.engine.journal.fragments import FENCE, as_json, fence_of
from agents.engine.journal.rows import Lease
from agents.lineage import ABOVE
from memory.hot import columns, instance
from memory.pool import execute_on


class Payer(NamedTuple):
    """What holds something in budgets: a run, with what it has charged and booked, or a call beside the runs."""

    thread_id: UUID
    user_id: int
    run_id: UUID | None = None
    call_id: UUID | None = None
    charged: Amount = Amount()
    booked: Amount = Amount()
    held: Amount = Amount()

    @property
    def unbooked(self) -> Amount:
        """What it has spent that no budget counts yet."""
        return self.charged.minus(self.booked)


@dataclass(slots=True)
class Account:
    """A budget, locked and with the figures of the window that is now, and what a payer holds in it."""

    budget: Budget
    held: Amount


RUN = """
SELECT run.thread_id, thread.user_id, run.id, run.charged, run.charged_tokens, run.booked, run.booked_tokens, run.held,
  run.held_tokens
FROM memory_agentrun run JOIN memory_thread thread ON thread.id = run.thread_id
WHERE {condition} ORDER BY run.id FOR NO KEY UPDATE OF run
"""
AT_WORK = RUN.format(condition=FENCE)
METERED = RUN.format(condition="run.metered AND run.thread_id = ANY(%(threads)s)")
LEFT = RUN.format(condition="run.id = %(run)s AND run.metered AND run.lease_token IS NULL")


def at_work(lease: Lease, on: Connection[Any]) -> Payer | None:
    """Lock a run; None when it has another worker, or is over."""
    return next(iter(_payers(AT_WORK, fence_of(lease), on)), None)


def left(run_id: UUID, on: Connection[Any]) -> Payer | None:
    """Lock a run that no worker has and budgets count; None when it is none."""
    return next(iter(_payers(LEFT, {"run": run_id}, on)), None)


def metered(threads: Sequence[UUID], on: Connection[Any]) -> list[Payer]:
    """Lock the runs of threads that budgets count, whoever has them."""
    return _payers(METERED, {"threads": list(threads)}, on)


def _payers(sql: str, parameters: dict[str, object], on: Connection[Any]) -> list[Payer]:
    return [
        Payer(thread, user, run, None, Amount(*figures[:2]), Amount(*figures[2:4]), Amount(*figures[4:]))
        for thread, user, run, *figures in execute_on(on, sql, parameters)
    ]


ACCOUNTS = f"""
WITH RECURSIVE {ABOVE},
b AS (
  SELECT * FROM agents_budget
  WHERE user_id = %(user)s AND (thread_id IS NULL OR thread_id IN (SELECT id FROM above))
  ORDER BY id FOR UPDATE)
SELECT {columns(Budget, "b")}, coalesce(h.money, 0), coalesce(h.tokens, 0)
FROM b LEFT JOIN agents_reservation h ON h.budget_id = b.id
  AND (h.run_id = %(run)s::uuid OR h.call_id = %(call)s::uuid)
"""


def accounts_of(payer: Payer, on: Connection[Any]) -> list[Account]:
    """Lock the budgets above a payer's thread. A run is locked before, so that what it holds does not change."""
    rows = execute_on(on, ACCOUNTS, _ids(payer) | {"user": payer.user_id, "thread": payer.thread_id})
    if not rows:
        return []
    now, zone = counting.clock(payer.user_id, on)
    accounts = [Account(instance(Budget, row[:-2]), Amount(*row[-2:])) for row in rows]
    for account in accounts:
        counting.bring_up_to_date(account.budget, now, zone, on)
    return accounts


def that_count(accounts: Sequence[Account]) -> list[Account]:
    """Without those of each run, in which nothing is counted beyond the run."""
    return [account for account in accounts if account.budget.counts]


# Amounts of money are written as text, because JSON's own numbers are not as long.
BUDGETS = """
n AS (
  SELECT * FROM jsonb_to_recordset(%(accounts)s) AS n(
    id uuid, begins timestamptz, counted_in text, extra numeric, warned_at timestamptz, spent numeric,
    spent_tokens bigint, reserved numeric, reserved_tokens bigint, money numeric, tokens bigint)),
b AS (
  UPDATE agents_budget SET begins = n.begins, counted_in = n.counted_in, extra = n.extra, warned_at = n.warned_at,
    spent = n.spent, spent_tokens = n.spent_tokens, reserved = n.reserved, reserved_tokens = n.reserved_tokens
  FROM n WHERE agents_budget.id = n.id)"""

HOLD = f"""
WITH {BUDGETS},
h AS (
  INSERT INTO agents_reservation (budget_id, run_id, call_id, money, tokens)
  SELECT n.id, %(run)s::uuid, %(call)s::uuid, n.money, n.tokens FROM n
  ON CONFLICT (run_id, budget_id) WHERE run_id IS NOT NULL
  DO UPDATE SET money = excluded.money, tokens = excluded.tokens)
UPDATE memory_agentrun SET held = %(held)s, held_tokens = %(held_tokens)s WHERE id = %(run)s::uuid
"""


def hold(payer: Payer, accounts: Sequence[Account], wanted: Amount, on: Connection[Any]) -> None:
    """Let a payer hold what it wants in each of its budgets; what it holds there already never gets less."""
    counted = that_count(accounts)
    for account in counted:
        budget, before = account.budget, account.held
        account.held = before.at_least(wanted)
        budget.reserved += account.held.money - before.money
        budget.reserved_tokens += account.held.tokens - before.tokens
    held = payer.held.at_least(wanted)
    figures = {"accounts": _rows(counted), "held": held.money, "held_tokens": held.tokens}
    execute_on(on, HOLD, _ids(payer) | figures)


BOOK = f"""
WITH {BUDGETS},
h AS (DELETE FROM agents_reservation WHERE run_id = %(run)s::uuid OR call_id = %(call)s::uuid)
UPDATE memory_agentrun SET booked = charged, booked_tokens = charged_tokens, held = 0, held_tokens = 0, metered = false
WHERE id = %(run)s::uuid
"""


def book(payer: Payer, accounts: Sequence[Account], spent: Amount, on: Connection[Any]) -> None:
    """Count in each of a payer's budgets what it has spent, and free what it held."""
    counted = that_count(accounts)
    for account in counted:
        budget = account.budget
        budget.reserved -= account.held.money
        budget.reserved_tokens -= account.held.tokens
        budget.spent += spent.money
        budget.spent_tokens += spent.tokens
    execute_on(on, BOOK, _ids(payer) | {"accounts": _rows(counted)})


def _ids(payer: Payer) -> dict[str, object]:
    return {"run": payer.run_id, "call": payer.call_id}


def _rows(accounts: Sequence[Account]) -> object:
    return as_json([_row(account) for account in accounts])


def _row(account: Account) -> dict[str, object]:
    budget, held = account.budget, account.held
    return {
        "id": budget.pk,
        "begins": budget.begins,
        "counted_in": budget.counted_in,
        "extra": str(budget.extra),
        "warned_at": budget.warned_at,
        "spent": str(budget.spent),
        "spent_tokens": budget.spent_tokens,
        "reserved": str(budget.reserved),
        "reserved_tokens": budget.reserved_tokens,
        "money": str(held.money),
        "tokens": held.tokens,
    }
