"""What the health monitor does to runs that no worker will ever end: let go of them, or end them.

Each condition is asked again in the statement that repairs, under the row's lock.
"""

from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from agents.engine.journal.claim import CRASHED
from agents.engine.journal.fragments import CLOSE_CALLS, CLOSE_LOST, LOST, LOST_NOW, NEXT_IN_LINE_OF, as_json
from memory import pool
from memory.ids import new_id
from memory.metadata import MessageMetadata
from memory.models import Source

# Silent for %(silence)s seconds: neither a model call of the run began or ended, nor a tool call.
SILENT = """
greatest(run.created_at, run.started_at) < clock_timestamp() - %(silence)s * interval '1 second'
AND NOT EXISTS (SELECT FROM agents_modelcall c WHERE c.run_id = run.id
  AND greatest(c.created_at, c.finished_at) > clock_timestamp() - %(silence)s * interval '1 second')
AND NOT EXISTS (SELECT FROM agent_actions a WHERE a.run_id = run.id
  AND greatest(a.created_at, a.started_at, a.finished_at) > clock_timestamp() - %(silence)s * interval '1 second')
"""

# No sweep finds these: no end of the lease, a lease from a clock that was wrong, a holder that hangs.
STUCK = f"""
run.status IN ('running', 'cancelling') AND (
  run.lease_until IS NULL OR run.lease_until > clock_timestamp() + 2 * %(lease)s * interval '1 second'
  OR run.lease_until > clock_timestamp() AND {SILENT})
"""

STUCK_RUNS = f"""
SELECT run.id, run.status FROM memory_agentrun run WHERE {STUCK} ORDER BY run.created_at LIMIT %(limit)s
"""

# A new token: the holder, if there is one, must neither write nor renew, and the next claim counts as a recovery.
RELEASE = f"""
UPDATE memory_agentrun AS run SET lease_token = %(token)s, lease_until = clock_timestamp(), due_at = NULL
WHERE run.id = %(run)s AND {STUCK} RETURNING run.id
"""


class OddRun(NamedTuple):
    """A run that is not as it should be."""

    run_id: UUID
    status: str


def stuck_runs(limit: int) -> list[OddRun]:
    """Live runs that no worker will ever take up, and runs whose holder gives no sign any more."""
    return [OddRun(*row) for row in pool.execute(STUCK_RUNS, _patience() | {"limit": limit})]


def release(run_id: UUID) -> bool:
    """Let the next worker claim a stuck run; returns whether it still was one."""
    return bool(pool.execute(RELEASE, _patience() | {"run": run_id, "token": new_id()}))


def _patience() -> dict[str, object]:
    return {"silence": settings.WAYMARK_STUCK_MINUTES * 60, "lease": settings.WAYMARK_LEASE_SECONDS}


STALE = f"run.status IN ('queued', 'running', 'cancelling') AND {SILENT}"

STALE_RUNS = f"""
SELECT run.id, run.status FROM memory_agentrun run JOIN memory_thread t ON t.id = run.thread_id
WHERE t.kind {{comparison}} %(kind)s AND {STALE} ORDER BY run.created_at LIMIT %(limit)s
"""

ABANDON = f"""
WITH l AS (
  SELECT t.id, t.user_id FROM memory_thread t JOIN memory_agentrun r ON r.thread_id = t.id
  WHERE r.id = %(run)s FOR NO KEY UPDATE OF t),
r AS (
  UPDATE memory_agentrun AS run SET status = 'failed', reason = 'stale', error = %(text)s, lease_token = NULL,
    lease_until = NULL, due_at = NULL, finished_at = clock_timestamp(), {LOST}
  FROM l WHERE run.id = %(run)s AND {STALE} RETURNING run.id, run.thread_id, run.status, {LOST_NOW}),
t AS (
  UPDATE memory_thread SET live_run = NULL FROM r WHERE memory_thread.id = r.thread_id AND live_run = r.id),
m AS (
  INSERT INTO memory_threadmessage (id, thread_id, run_id, source, message_type, content, metadata)
  SELECT %(message)s, thread_id, id, %(source)s, 'text', %(text)s, %(metadata)s FROM r),
{CLOSE_CALLS}, {CLOSE_LOST})
SELECT r.thread_id, l.user_id, {NEXT_IN_LINE_OF.format(user="l.user_id")} FROM r, l
"""


def stale_runs_of(kind: str, silence: float, limit: int) -> list[OddRun]:
    """Runs that gave no sign for `silence` seconds, of agents of one kind."""
    return _stale_runs("=", kind, silence, limit)


def stale_runs_of_others(kind: str, silence: float, limit: int) -> list[OddRun]:
    """The same of agents of every other kind."""
    return _stale_runs("<>", kind, silence, limit)


def _stale_runs(comparison: str, kind: str, silence: float, limit: int) -> list[OddRun]:
    wanted = {"kind": kind, "silence": silence, "limit": limit}
    return [OddRun(*row) for row in pool.execute(STALE_RUNS.format(comparison=comparison), wanted)]


class Abandoned(NamedTuple):
    """The message that says so, its thread and its user. `in_line` as in `Final`."""

    message_id: UUID
    thread_id: UUID
    user_id: int
    in_line: UUID | None


def abandon(run_id: UUID, silence: float, text: str) -> Abandoned | None:
    """End a stale run as failed, with `text` as an error that its user can try again. None: it is stale no more."""
    message_id = new_id()
    metadata = MessageMetadata(reason="error", retryable=True).stored()
    parameters = {"run": run_id, "silence": silence, "text": text, "message": message_id, "crashed": CRASHED}
    rows = pool.execute(ABANDON, parameters | {"source": Source.ERROR, "metadata": as_json(metadata)})
    return Abandoned(message_id, *rows[0]) if rows else None
