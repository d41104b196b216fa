"""D8: the terminal state; and the other ways to let go of a run."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from agents.engine.journal.fragments import (
    CELLS,
    FENCE,
    HISTORY,
    NEXT_IN_LINE,
    SETTLE_CALL,
    TOTALS,
    as_json,
    entry,
    execute,
    fence_of,
    settle_parameters,
)
from agents.engine.journal.rows import Cell, Final, Lease, LeaseLost, Settled
from memory import pool
from memory.ids import new_id
from memory.messages import Message

FINAL = f"""
WITH l AS (SELECT id FROM memory_thread WHERE id = %(thread)s FOR NO KEY UPDATE),
r AS (
  UPDATE memory_agentrun AS run SET status = %(status)s, reason = %(reason)s, error = %(error)s,
    step = greatest(run.step, %(iterations)s), lease_token = NULL, lease_until = NULL,
    finished_at = clock_timestamp(), {TOTALS}
  FROM l WHERE {FENCE}
  RETURNING run.id, run.thread_id, run.step, run.status, run.cost, run.cost_known),
t AS (
  UPDATE memory_thread SET live_run = CASE WHEN pending > 0 THEN %(next_run)s::uuid END FROM r
  WHERE memory_thread.id = r.thread_id RETURNING memory_thread.id, live_run),
n AS (
  INSERT INTO memory_agentrun (id, thread_id, status, trigger)
  SELECT live_run, id, 'queued', 'message' FROM t WHERE live_run IS NOT NULL),
{HISTORY}, {SETTLE_CALL}, {CELLS},
d AS (
  UPDATE agent_actions SET status = CASE agent_actions.status WHEN 'intent' THEN 'cancelled' ELSE 'unknown' END,
    error = 'The run ended before an outcome was recorded.', finished_at = clock_timestamp()
  FROM r WHERE agent_actions.run_id = r.id AND agent_actions.status IN ('intent', 'started'))
SELECT t.live_run, r.cost, r.cost_known, (SELECT min(created_at) FROM m), {NEXT_IN_LINE} FROM r, t
"""


def final(
    lease: Lease,
    status: str,
    settled: Settled,
    *,
    reason: str = "",
    error: str = "",
    messages: Sequence[Message] = (),
    cells: Sequence[Cell] = (),
    on: Connection[Any] | None = None,
) -> Final:
    """(D3 +) D8: the last entries and messages, the terminal state, and the next run when messages are pending."""
    entries = [entry(lease.next_seq + place, message) for place, message in enumerate(messages) if message.blocks]
    rows = execute(
        FINAL,
        fence_of(lease)
        | settle_parameters(lease, settled)
        | {
            "thread": lease.thread_id,
            "user": lease.user_id,
            "iterations": lease.iterations,
            "status": status,
            "reason": reason,
            "error": error,
            "entries": as_json(entries),
            "cells": as_json(cells),
            "next_run": new_id(),
        },
        on,
    )
    if not rows:
        raise LeaseLost
    next_run, cost, known, at, in_line = rows[0]
    return Final(next_run, cost if known else None, at, in_line)


HAND_OVER = f"""
WITH r AS (
  UPDATE memory_agentrun AS run SET status = CASE run.status WHEN 'running' THEN 'queued' ELSE run.status END,
    lease_token = NULL, lease_until = clock_timestamp() WHERE {FENCE} RETURNING run.id)
UPDATE agents_modelcall SET status = 'cancelled', cost = 0, finished_at = clock_timestamp()
FROM r WHERE run_id = r.id AND agents_modelcall.status = 'started'
"""


def hand_over(lease: Lease) -> None:
    """Give a run back at a step boundary, because this worker shuts down."""
    pool.execute(HAND_OVER, fence_of(lease))


STOP = """
UPDATE memory_agentrun SET status = 'cancelling', due_at = NULL,
  lease_until = CASE WHEN lease_token IS NULL THEN clock_timestamp() ELSE lease_until END
WHERE id = %(run)s AND status IN ('queued', 'running', 'retry_wait', 'waiting_approval')
RETURNING lease_token IS NOT NULL
"""


def stop(run_id: UUID) -> bool | None:
    """Ask for a run's end. None: it is ending or over already; else whether a worker holds it. One that nobody holds
    can be claimed at once and is settled by whoever does, like every other."""
    rows = pool.execute(STOP, {"run": run_id})
    return rows[0][0] if rows else None
