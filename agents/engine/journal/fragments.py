"""Pieces that several durable points share: the fence, and rows written from JSON arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from agents.engine.journal.rows import Lease, Settled
from memory import pool
from memory.encoding import dumps
from memory.messages import BLOCKS, Message
from tools.base import Effect
from tools.recorded import NOT_EXECUTED

FENCE = "run.id = %(run)s AND run.lease_token = %(token)s AND run.status IN ('running', 'cancelling')"

HISTORY = """
h AS (
  INSERT INTO memory_historyentry (thread_id, run_id, seq, role, blocks)
  SELECT r.thread_id, r.id, e.seq, e.role, e.blocks
  FROM r, jsonb_to_recordset(%(entries)s) AS e(seq int, role text, blocks jsonb))"""

CELLS = """
m AS (
  INSERT INTO memory_threadmessage (id, thread_id, run_id, source, message_type, content, metadata)
  SELECT e.id, r.thread_id, r.id, e.source, e.message_type, e.content, e.metadata
  FROM r, jsonb_to_recordset(%(cells)s)
    AS e(id uuid, source text, message_type text, content text, metadata jsonb)
  RETURNING created_at)"""

CELLS_ANEW = """
m AS (
  INSERT INTO memory_threadmessage (id, thread_id, run_id, source, message_type, content, metadata)
  SELECT e.id, r.thread_id, r.id, e.source, e.message_type, e.content, e.metadata || {more}
  FROM r, jsonb_to_recordset(%(cells)s)
    AS e(id uuid, source text, message_type text, content text, metadata jsonb) {where}
  ON CONFLICT (id) DO UPDATE SET source = excluded.source, content = excluded.content, metadata = excluded.metadata,
    position = excluded.position, created_at = excluded.created_at
  RETURNING created_at, metadata)"""
"""Cells of which one may be there already: it is replaced, and moves to the end of the thread."""

SETTLE_CALL = """
c AS (
  UPDATE agents_modelcall SET status = %(call_status)s, input_tokens = %(input)s, output_tokens = %(output)s,
    cached_tokens = %(cached)s, written_tokens = %(written)s, estimated = %(estimated)s, answered_by = %(answered_by)s,
    cost = %(cost)s, charged = %(charge)s, charged_tokens = %(charge_tokens)s,
    latency_ms = %(latency)s, error = %(call_error)s, finished_at = clock_timestamp()
  FROM r WHERE agents_modelcall.id = %(call)s AND agents_modelcall.status = 'started')"""

TOTALS = """
input_tokens = run.input_tokens + coalesce(%(input)s::bigint, 0),
output_tokens = run.output_tokens + coalesce(%(output)s::bigint, 0),
cached_tokens = run.cached_tokens + coalesce(%(cached)s::bigint, 0),
written_tokens = run.written_tokens + coalesce(%(written)s::bigint, 0),
cost = run.cost + coalesce(%(cost)s::numeric, 0), cost_known = run.cost_known AND %(cost)s::numeric IS NOT NULL,
charged = run.charged + %(charge)s, charged_tokens = run.charged_tokens + %(charge_tokens)s"""

IN_DOUBT = f"agent_actions.status = 'started' AND agent_actions.effect NOT IN ('{Effect.PURE}', '{Effect.LOCAL}')"
"""Without an outcome a local effect was rolled back, and one that only reads does not matter."""

CLOSE_CALLS = f"""
d AS (
  UPDATE agent_actions SET status = CASE WHEN {IN_DOUBT} THEN 'unknown' ELSE 'cancelled' END,
    error = CASE WHEN {IN_DOUBT} THEN 'The run ended before an outcome was recorded.' ELSE '{NOT_EXECUTED}' END,
    finished_at = clock_timestamp()
  FROM r WHERE agent_actions.run_id = r.id AND (
    agent_actions.status IN ('intent', 'started') OR agent_actions.status = 'proposed' AND r.status = 'cancelled')
  RETURNING agent_actions.id, old.status AS was),
p AS (
  UPDATE tools_approval SET state = 'cancelled', decided_at = clock_timestamp()
  FROM r, agent_actions a
  WHERE tools_approval.thread_id = r.thread_id AND tools_approval.state = 'requested'
    AND a.id = tools_approval.action_id AND a.run_id = r.id AND (a.status <> 'proposed' OR r.status = 'cancelled'))"""
"""What becomes of the calls of a run that ends as `r` says, and of what was asked about them. Proposed ones outlive it
unless it was stopped."""

PULSE = "r.status = 'cancelling', (SELECT pending > 0 FROM memory_thread WHERE id = r.thread_id), r.metered"

OPEN_CALL = """EXISTS (
  SELECT FROM agents_modelcall o WHERE o.run_id = run.id AND o.status = 'started')"""
LEFT_OPEN = f"run.metered AND {OPEN_CALL}"

LOST = f"""
cost_known = run.cost_known AND NOT {OPEN_CALL},
charged = CASE WHEN {LEFT_OPEN} THEN greatest(run.charged, run.booked + run.held) ELSE run.charged END,
charged_tokens = CASE WHEN {LEFT_OPEN} THEN greatest(run.charged_tokens, run.booked_tokens + run.held_tokens)
  ELSE run.charged_tokens END"""
"""Of a run that is taken from a worker: a call that this had open may have been answered, so its cost is not known, and
all that is held for it counts as spent (invariant I17)."""

LOST_NOW = "new.charged - old.charged AS lost, new.charged_tokens - old.charged_tokens AS lost_tokens"

CLOSE_LOST = """
b AS (
  UPDATE agents_modelcall SET status = 'failed', error = %(crashed)s, finished_at = clock_timestamp(),
    charged = r.lost, charged_tokens = r.lost_tokens
  FROM r WHERE agents_modelcall.run_id = r.id AND agents_modelcall.status = 'started'"""
"""The call that was open; not closed, for more conditions. `r` returns LOST_NOW."""


# Found by the user's threads, of which there are few; a run that waits is the live run of its thread.
QUEUED_OF_USER = """
memory_thread y JOIN memory_agentrun x ON x.id = y.live_run
WHERE y.user_id = {user} AND y.live_run IS NOT NULL AND x.status = 'queued'"""

# For which there may be a slot when the run of the statement lets go of its own.
NEXT_IN_LINE_OF = f"(SELECT x.id FROM {QUEUED_OF_USER} AND x.id <> %(run)s ORDER BY x.created_at LIMIT 1)"
NEXT_IN_LINE = NEXT_IN_LINE_OF.format(user="%(user)s")


def fence_of(lease: Lease) -> dict[str, object]:
    return {"run": lease.run_id, "token": lease.token}


def settle_parameters(lease: Lease, settled: Settled) -> dict[str, object]:
    return {
        "call": lease.progress.call_id,
        "call_status": settled.status,
        "input": settled.usage.input_tokens,
        "output": settled.usage.output_tokens,
        "cached": settled.usage.cached_tokens,
        "written": settled.usage.written_tokens,
        "estimated": settled.usage.estimated,
        "answered_by": settled.usage.model,
        "cost": settled.cost,
        "latency": settled.latency_ms,
        "call_error": settled.error,
        "charge": settled.charge,
        "charge_tokens": settled.charge_tokens,
    }


def entry(seq: int, message: Message) -> dict[str, object]:
    return {"seq": seq, "role": message.role, "blocks": BLOCKS.dump_python(message.blocks, mode="json")}


def as_json(rows: Sequence[object] | Mapping[str, object]) -> Jsonb:
    """orjson knows dataclasses, UUIDs and dicts; on any connection, whatever its own JSON settings are."""
    return Jsonb(dict(rows) if isinstance(rows, Mapping) else rows, dumps=dumps)


def execute(sql: str, parameters: Mapping[str, object], on: Connection[Any] | None) -> list[pool.Row]:
    return pool.execute(sql, parameters) if on is None else pool.execute_on(on, sql, parameters)
