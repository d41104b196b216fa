"""Leases are renewed, and runs that nobody holds are found."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from agents.engine.journal.rows import Lease
from memory import pool

RENEW = """
UPDATE memory_agentrun AS run SET lease_until = clock_timestamp() + %(lease)s * interval '1 second'
FROM unnest(%(runs)s::uuid[], %(tokens)s::uuid[]) AS x(id, token)
WHERE run.id = x.id AND run.lease_token = x.token AND run.status IN ('running', 'cancelling')
RETURNING run.id, run.status = 'cancelling'
"""


def renew(leases: Sequence[Lease]) -> dict[UUID, bool]:
    """Renew many leases at once. Returns the runs that are still ours, and whether each is to be stopped."""
    parameters = {
        "lease": settings.WAYMARK_LEASE_SECONDS,
        "runs": [lease.run_id for lease in leases],
        "tokens": [lease.token for lease in leases],
    }
    return dict(pool.execute(RENEW, parameters))


LOST = """
SELECT id FROM memory_agentrun
WHERE status = 'queued' AND created_at < clock_timestamp() - %(grace)s * interval '1 second'
  OR status = 'retry_wait' AND due_at <= clock_timestamp()
  OR status IN ('running', 'cancelling') AND lease_until < clock_timestamp()
ORDER BY created_at LIMIT 200
"""


def lost_runs(grace: float) -> list[UUID]:
    """Runs that nobody works on although they are due; the doorbell's `grace` is in seconds."""
    return [row[0] for row in pool.execute(LOST, {"grace": grace})]
