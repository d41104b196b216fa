"""Leases are renewed, and runs that nobody holds are found."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from agents.engine.journal.rows import Lease
from memory import pool

# Rows that somebody has locked right now are skipped, not waited for: this statement touches many runs, in no order.
RENEW = """
WITH ours AS (
  SELECT run.id, run.status = 'cancelling' AS cancelling
  FROM memory_agentrun run JOIN unnest(%(runs)s::uuid[], %(tokens)s::uuid[]) AS x(id, token) ON x.id = run.id
  WHERE run.lease_token = x.token AND run.status IN ('running', 'cancelling')),
free AS (
  SELECT run.id FROM memory_agentrun run JOIN ours ON ours.id = run.id FOR NO KEY UPDATE OF run SKIP LOCKED),
renewed AS (
  UPDATE memory_agentrun AS run SET lease_until = clock_timestamp() + %(lease)s * interval '1 second'
  FROM free, unnest(%(runs)s::uuid[], %(tokens)s::uuid[]) AS x(id, token)
  WHERE run.id = free.id AND run.id = x.id AND run.lease_token = x.token RETURNING run.id)
SELECT ours.id, ours.cancelling, renewed.id IS NOT NULL FROM ours LEFT JOIN renewed ON renewed.id = ours.id
"""


class Renewal(NamedTuple):
    """What became of a lease that is ours: whether the run is to be stopped, and whether it was renewed this time."""

    cancelling: bool
    renewed: bool


def renew(leases: Sequence[Lease]) -> dict[UUID, Renewal]:
    """Renew many leases at once. Runs that are missing from the answer are not ours any more."""
    parameters = {
        "lease": settings.WAYMARK_LEASE_SECONDS,
        "runs": [lease.run_id for lease in leases],
        "tokens": [lease.token for lease in leases],
    }
    return {run_id: Renewal(cancelling, renewed) for run_id, cancelling, renewed in pool.execute(RENEW, parameters)}


# Whoever finds a lost run puts its next search off, so that a backlog is not rung for by every worker all the time. One
# whose wait is over is queued from then on. A queued run whose user has as many at work as may be is not lost: the end
# of one of those rings for it.
LOST = """
WITH busy AS (
  SELECT t.user_id, count(*) AS runs FROM memory_agentrun r JOIN memory_thread t ON t.id = r.thread_id
  WHERE r.status IN ('running', 'cancelling') AND r.lease_token IS NOT NULL AND r.lease_until > clock_timestamp()
  GROUP BY t.user_id)
UPDATE memory_agentrun AS run
SET due_at = clock_timestamp() + %(grace)s * interval '1 second',
  status = CASE WHEN run.status IN ('retry_wait', 'waiting_budget') THEN 'queued' ELSE run.status END
FROM (
  SELECT x.id, coalesce(busy.runs, 0) AS runs FROM memory_agentrun x JOIN memory_thread t ON t.id = x.thread_id
  LEFT JOIN busy ON busy.user_id = t.user_id
  WHERE (x.status = 'queued' AND x.created_at < clock_timestamp() - %(grace)s * interval '1 second'
      OR x.status = 'retry_wait' OR x.status = 'waiting_budget' AND x.due_at IS NOT NULL
      OR x.status IN ('running', 'cancelling') AND x.lease_until < clock_timestamp())
    AND coalesce(x.due_at, '-infinity') <= clock_timestamp()
    AND (%(most)s = 0 OR x.status = 'cancelling' OR coalesce(busy.runs, 0) < %(most)s)
  ORDER BY coalesce(busy.runs, 0), x.created_at LIMIT 200 FOR NO KEY UPDATE OF x SKIP LOCKED) AS found
WHERE run.id = found.id RETURNING run.id, found.runs, run.created_at
"""


def lost_runs(grace: float) -> list[UUID]:
    """Runs that nobody works on although they are due, of the users with the fewest runs at work first.

    Args:
        grace: how long the doorbell may take, in seconds.
    """
    parameters = {"grace": grace, "most": settings.WAYMARK_MAX_RUNNING_PER_USER}
    lost = pool.execute(LOST, parameters)  # an UPDATE returns its rows in any order
    return [run_id for run_id, _, _ in sorted(lost, key=lambda row: row[1:])]
