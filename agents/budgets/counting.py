"""What has been spent in the window of a budget, reckoned anew from what is on record: when the budget is set, and when
its user moves to another time zone, where days and months begin at another moment."""

from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.db import connection

from agents.budgets import windows
from agents.budgets.models import Budget
from agents.models import AgentTask, UserAgent
from memory.models import Thread

# One statement, and so one snapshot: a run's charges are on its calls and on its row in the same commit. What a run has
# charged and not booked is left out, because it is booked in this budget, too, when the run lets go. Of calls of
# unknown cost the worst is on record.
COUNTED = """
WITH mine AS (
  SELECT id FROM memory_thread
  WHERE user_id = %(user)s AND (%(threads)s::uuid[] IS NULL OR id = ANY(%(threads)s::uuid[]))),
runs AS (SELECT r.id, r.metered, r.charged - r.booked AS money, r.charged_tokens - r.booked_tokens AS tokens
  FROM memory_agentrun r JOIN mine ON mine.id = r.thread_id),
calls AS (
  SELECT c.* FROM agents_modelcall c JOIN runs ON runs.id = c.run_id UNION ALL
  SELECT c.* FROM agents_modelcall c JOIN mine ON mine.id = c.thread_id UNION ALL
  SELECT c.* FROM agents_modelcall c WHERE c.user_id = %(user)s AND %(threads)s::uuid[] IS NULL),
spent AS (
  SELECT sum(coalesce(charged, cost)) AS money,
    sum(coalesce(charged_tokens, coalesce(input_tokens, 0) + coalesce(output_tokens, 0))) AS tokens
  FROM calls WHERE created_at >= coalesce(%(begins)s::timestamptz, '-infinity')),
unbooked AS (SELECT sum(money) AS money, sum(tokens) AS tokens FROM runs WHERE metered)
SELECT greatest(coalesce(spent.money, 0) - coalesce(unbooked.money, 0), 0),
  greatest(coalesce(spent.tokens, 0) - coalesce(unbooked.tokens, 0), 0) FROM spent, unbooked
"""


def zone_of(user_id: int) -> ZoneInfo:
    name = UserAgent.objects.filter(user=user_id).values_list("time_zone", flat=True).first()
    return ZoneInfo(name or "Etc/UTC")


def bring_up_to_date(budget: Budget, now: datetime, zone: ZoneInfo) -> None:
    """Give a budget the figures of the window that is `now`."""
    budget.now, budget.zone = now, zone
    begins = windows.began(budget.window, now, zone)
    if begins is not None and budget.counted_in != zone.key:
        count(budget, begins)
    else:
        budget.begin(begins)


def count(budget: Budget, begins: datetime | None) -> None:
    """Reckon what was spent since then, in the zone that `budget.zone` says."""
    budget.begins, budget.counted_in = begins, budget.zone.key
    if not budget.counts:
        return
    threads = None if budget.thread is None else [thread.pk for thread in threads_below(budget.thread)]
    with connection.cursor() as cursor:
        cursor.execute(COUNTED, {"user": budget.user_id, "threads": threads, "begins": begins})
        money, tokens = cursor.fetchone() or (Decimal(0), 0)
    budget.spent, budget.spent_tokens = money, int(tokens)


def threads_below(thread: Thread) -> list[Thread]:
    """A thread and those of the tasks that were sent off from it, however far down."""
    found, newest = [thread], [thread]
    while newest:
        newest = [task.thread for task in AgentTask.objects.filter(parent__in=newest).select_related("thread")]
        found += newest
    return found
