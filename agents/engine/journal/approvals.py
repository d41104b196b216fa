"""D4 and the D5 that follows it: a run waits for a person's word, and what was approved is started."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from agents.engine.crashpoints import crashpoint
from agents.engine.journal.fenced import fenced
from agents.engine.journal.fragments import FENCE, NEXT_IN_LINE, PULSE, execute, fence_of
from agents.engine.journal.rows import Lease, LeaseLost, Pulse, WaitAnswer
from agents.engine.journal.surely import LET_GO, LOCK_THREAD, let_go_by, looked_up
from memory.models import GAVE_WAY

LOCK_OURS = f"SELECT 1 FROM memory_agentrun run WHERE {FENCE} FOR NO KEY UPDATE"

# Messages and decisions take the same locks first, so that this statement sees what they have committed.
WAIT = f"""
WITH s AS (
  SELECT t.pending > 0 AS pending, count(*) FILTER (WHERE p.state <> 'requested') > 0 AS decided,
    min(p.expires_at) AS due
  FROM memory_thread t, agent_actions a JOIN tools_approval p ON p.action_id = a.id
  WHERE t.id = %(thread)s AND a.run_id = %(run)s AND a.step = %(step)s AND a.status = 'intent' GROUP BY t.id),
r AS (
  UPDATE memory_agentrun AS run SET status = 'waiting_approval', due_at = s.due, lease_token = NULL, lease_until = NULL
  FROM s WHERE {FENCE} AND run.status = 'running' AND run.reason <> '{GAVE_WAY}' AND NOT s.pending AND NOT s.decided
  RETURNING run.id)
SELECT EXISTS (SELECT FROM r), run.status = 'cancelling', coalesce((SELECT pending FROM s), false),
  run.reason = '{GAVE_WAY}', {NEXT_IN_LINE}
FROM memory_agentrun run WHERE run.id = %(run)s
"""


def wait_for_approval(lease: Lease, on: Connection[Any]) -> WaitAnswer:
    """D4: let go of the run until its calls are decided, unless a decision, a message or a stop has come already, or
    it is to give way (`engine.waits.give_way`).

    Args:
        on: the connection of an open transaction.
    """
    parameters = fence_of(lease) | {"thread": lease.thread_id, "user": lease.user_id, "step": lease.progress.step}
    execute(LOCK_THREAD, parameters, on)
    if not execute(LOCK_OURS, parameters, on):
        raise LeaseLost
    return WaitAnswer(*execute(WAIT, parameters, on)[0])


WAITS = f"""
SELECT true, false, false, false, {NEXT_IN_LINE} FROM memory_agentrun run WHERE {LET_GO} AND run.finished_at IS NULL
"""


def waits_for_approval(lease: Lease) -> WaitAnswer | None:
    """Whether the transaction of `wait_for_approval` was committed and let go of the run, after its connection was
    lost. None: it did not."""
    rows = looked_up(LOCK_THREAD, WAITS, let_go_by(lease))
    return WaitAnswer(*rows[0]) if rows else None


DECISION = "SELECT state, reason, seen FROM tools_approval WHERE action_id = %(action)s"


def decision(action_id: UUID) -> tuple[str, str, str]:
    """What was decided about a call, why, and what was seen of it then (`tools.signature.shown`)."""
    state, reason, seen = execute(DECISION, {"action": action_id}, None)[0]
    return state, reason, seen


START = f"""
WITH r AS (
  UPDATE memory_agentrun AS run SET due_at = NULL WHERE {FENCE}
  RETURNING run.id, run.thread_id, run.status, run.metered),
a AS (
  UPDATE agent_actions SET status = 'started', fence = %(fence)s, started_at = clock_timestamp()
  FROM r WHERE agent_actions.id = %(action)s AND agent_actions.status IN ('intent', 'proposed')
    AND r.status = 'running' AND NOT EXISTS (
      SELECT FROM tools_approval p
      WHERE p.action_id = %(action)s AND (p.state <> 'approved' OR p.digest <> %(digest)s)))
SELECT {PULSE} FROM r
"""
STARTED = "EXISTS (SELECT FROM agent_actions WHERE id = %(action)s AND status = 'started' AND fence = %(fence)s)"


def start(lease: Lease, action_id: UUID, digest: str) -> tuple[bool, Pulse]:
    """D5 of a call that was recorded as intent: only when nothing asks for approval, or exactly this was approved.
    Returns whether it is started."""
    parameters = fence_of(lease) | {"action": action_id, "digest": digest, "fence": lease.fence}
    crashpoint("start.before")
    pulse = fenced(START, lease, parameters, STARTED)
    crashpoint("start.after")
    return bool(execute(f"SELECT {STARTED}", parameters, None)[0][0]), pulse
