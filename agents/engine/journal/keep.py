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
# whose wait is over is queued from then on.
LOST = """
UPDATE memory_agentrun AS run
SET due_at = clock_timestamp() + %(grace)s * interval '1 second',
  status = CASE run.status WHEN 'retry_wait' THEN 'queued' ELSE run.status END
FROM (
  SELECT id FROM memory_agentrun
  WHERE (status = 'queued' AND created_at < clock_timestamp() - %(grace)s * interval '1 second'
      OR status = 'retry_wait' OR status IN ('running', 'cancelling') AND lease_until < clock_timestamp())
    AND coalesce(due_at, '-infinity') <= clock_timestamp()
  ORDER BY created_at LIMIT 200 FOR NO KEY UPDATE SKIP LOCKED) AS found
WHERE run.id = found.id RETURNING run.id
"""


def lost_runs(grace: float) -> list[UUID]:
    """Runs that nobody works on although they are due; the doorbell's `grace` is in seconds."""
    return [row[0] for row in pool.execute(LOST, {"grace": grace})]
