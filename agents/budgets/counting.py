"""What has been spent in the window of a budget, reckoned anew from what is on record: when the budget is set, and when
its user moves to another time zone, where days and months begin at another moment."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from psycopg import Connection

from agents.budgets import windows
from agents.budgets.models import Budget
from agents.lineage import BELOW
from agents.models import UserAgent
from memory import pool

CLOCK = "SELECT clock_timestamp(), (SELECT time_zone FROM agents_useragent WHERE user_id = %(user)s)"

# One statement, and so one snapshot: a run's charges are on its calls and on its row in the same commit. What a run has
# charged and not booked is left out, because it is booked in this budget, too, when the run lets go. Of calls of
# unknown cost the worst is on record.
COUNTED = f"""
WITH RECURSIVE {BELOW},
mine AS (
  SELECT id FROM memory_thread
  WHERE user_id = %(user)s AND (%(thread)s::uuid IS NULL OR id IN (SELECT id FROM below))),
runs AS (SELECT r.id, r.metered, r.charged - r.booked AS money, r.charged_tokens - r.booked_tokens AS tokens
  FROM memory_agentrun r JOIN mine ON mine.id = r.thread_id),
calls AS (
  SELECT c.* FROM agents_modelcall c JOIN runs ON runs.id = c.run_id UNION ALL
  SELECT c.* FROM agents_modelcall c JOIN mine ON mine.id = c.thread_id UNION ALL
  SELECT c.* FROM agents_modelcall c WHERE c.user_id = %(user)s AND %(thread)s::uuid IS NULL),
spent AS (
  SELECT sum(coalesce(charged, cost)) AS money,
    sum(coalesce(charged_tokens, coalesce(input_tokens, 0) + coalesce(output_tokens, 0))) AS tokens
  FROM calls WHERE created_at >= coalesce(%(begins)s::timestamptz, '-infinity')),
unbooked AS (SELECT sum(money) AS money, sum(tokens) AS tokens FROM runs WHERE metered)
SELECT greatest(coalesce(spent.money, 0) - coalesce(unbooked.money, 0), 0),
  greatest(coalesce(spent.tokens, 0) - coalesce(unbooked.tokens, 0), 0) FROM spent, unbooked
"""


def zone_of(user_id: int) -> ZoneInfo:
    return _zone(UserAgent.objects.filter(user=user_id).values_list("time_zone", flat=True).first())


def clock(user_id: int, on: Connection[Any]) -> tuple[datetime, ZoneInfo]:
    """PostgreSQL's time, and the user's zone. The worker's own clock may be wrong, and would forget what was spent."""
    now, zone = pool.execute_on(on, CLOCK, {"user": user_id})[0]
    return now, _zone(zone)


def _zone(name: str | None) -> ZoneInfo:
    return ZoneInfo(name or "Etc/UTC")


def bring_up_to_date(budget: Budget, now: datetime, zone: ZoneInfo, on: Connection[Any] | None = None) -> None:
    """Give a budget the figures of the window that is `now`. on: as `count`."""
    budget.now, budget.zone = now, zone
    begins = windows.began(budget.window, now, zone)
    if begins is not None and budget.counted_in != zone.key:
        count(budget, begins, on)
    else:
        budget.begin(begins)


def count(budget: Budget, begins: datetime | None, on: Connection[Any] | None = None) -> None:
    """Reckon what was spent since then, in the zone that `budget.zone` says.

    Args:
        on: the connection of the transaction that has the budget locked; None is the ORM's.
    """
    budget.begins, budget.counted_in = begins, budget.zone.key
    if not budget.counts:
        return
    parameters = {"user": budget.user_id, "thread": budget.thread_id, "begins": begins}
    money, tokens = pool.execute_on(on or pool.orm_connection(), COUNTED, parameters)[0]
    budget.spent, budget.spent_tokens = money, int(tokens)
