"""D3, D5, D6, D7 and D2: the reply, the start of its calls, their outcome, and the next call."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from agents.engine.crashpoints import crashpoint
from agents.engine.journal.fenced import fenced, landed
from agents.engine.journal.fragments import (
    CELLS,
    FENCE,
    HISTORY,
    PULSE,
    SETTLE_CALL,
    START_CALL,
    TOTALS,
    as_json,
    entry,
    settle_parameters,
    start_parameters,
)
from agents.engine.journal.rows import (
    ActionOutcome,
    ActionStart,
    ApprovalRequest,
    Cell,
    Lease,
    NextCall,
    Pulse,
    Settled,
)
from memory.ids import new_id
from memory.messages import Message

REPLY = f"""
WITH r AS (
  UPDATE memory_agentrun AS run SET retries = 0, {TOTALS} WHERE {FENCE}
  RETURNING run.id, thread_id, step, status, metered),
{HISTORY}, {SETTLE_CALL}, {CELLS},
a AS (
  INSERT INTO agent_actions (id, run_id, thread_id, user_id, step, position, call_id, tool, effect, risk, reversal,
    arguments, status, fence, started_at)
  SELECT e.id, r.id, r.thread_id, %(user)s, r.step, e.position, e.call_id, e.tool, e.effect, e.risk, e.reversal,
    e.arguments, e.status, %(fence)s, CASE e.status WHEN 'started' THEN clock_timestamp() END
  FROM r, jsonb_to_recordset(%(actions)s) AS e(id uuid, position int, call_id text, tool text, effect text,
    risk text, reversal text, arguments jsonb, status text)),
p AS (
  INSERT INTO tools_approval (action_id, user_id, thread_id, state, cause, digest, target, sources, expires_at)
  SELECT e.id, %(user)s, r.thread_id, 'requested', e.cause, e.digest, e.target, e.sources,
    clock_timestamp() + e.expires * interval '1 second'
  FROM r, jsonb_to_recordset(%(approvals)s)
    AS e(id uuid, cause text, digest text, target text, sources jsonb, expires float))
SELECT {PULSE} FROM r
"""


REPLY_LANDED = "EXISTS (SELECT FROM agent_actions WHERE id = %(first)s)"


def reply(
    lease: Lease,
    message: Message,
    settled: Settled,
    actions: Sequence[ActionStart],
    approvals: Sequence[ApprovalRequest],
    cells: Sequence[Cell],
) -> Pulse:
    """D3 + D5: the assistant's entry, what the call used, and its tool calls (at least one) as started. D4: those
    that need approval as intent, with what is asked for."""
    entries = [entry(lease.progress.next_seq, message)] if message.blocks else []
    crashpoint("D5.before")
    pulse = fenced(
        REPLY,
        lease,
        settle_parameters(lease, settled)
        | {
            "entries": as_json(entries),
            "cells": as_json(cells),
            "actions": as_json(actions),
            "approvals": as_json(approvals),
            "first": actions[0].id,
            "user": lease.user_id,
            "fence": lease.fence,
        },
        REPLY_LANDED,
    )
    crashpoint("D5.after")
    lease.progress.next_seq += len(entries)
    return pulse


OUTCOME = f"""
WITH r AS (
  UPDATE memory_agentrun AS run SET step = step + %(advance)s, guard = coalesce(%(guard)s, guard)
  WHERE {FENCE} RETURNING run.id, thread_id, step, status, metered),
d AS (
  UPDATE agent_actions SET status = e.status, output = e.output, summary = e.summary, error = e.error, undo = e.undo,
    finished_at = CASE e.status WHEN 'proposed' THEN NULL ELSE clock_timestamp() END
  FROM r, jsonb_to_recordset(%(outcomes)s)
    AS e(id uuid, status text, output text, summary text, error text, undo jsonb)
  WHERE agent_actions.id = e.id AND agent_actions.status IN ('intent', 'proposed', 'started')),
{HISTORY}, {CELLS},
c AS ({START_CALL.format(id="call", attempt="%(fence)s")} WHERE %(call)s::uuid IS NOT NULL)
SELECT {PULSE} FROM r
"""


OUTCOME_LANDED = """coalesce(
  EXISTS (SELECT FROM agents_modelcall WHERE id = %(call)s::uuid)
  OR (SELECT finished_at IS NOT NULL OR status = 'proposed' FROM agent_actions WHERE id = %(first)s::uuid), false)"""


def outcome(
    lease: Lease,
    outcomes: Sequence[ActionOutcome],
    entries: Mapping[int, Message],
    cells: Sequence[Cell] = (),
    next_call: NextCall | None = None,
    on: Connection[Any] | None = None,
) -> Pulse:
    """D6, and with `next_call` D7 + D2 in the same commit.

    Args:
        entries: history places (already reserved by the caller) and what goes there.
        on: the connection whose open transaction holds a local tool's effect; None commits by itself.
    """
    call, progress = new_id() if next_call else None, lease.progress
    crashpoint("D7.before" if next_call else "D6.before")
    pulse = fenced(
        OUTCOME,
        lease,
        {
            "outcomes": as_json(outcomes),
            "entries": as_json([entry(seq, message) for seq, message in entries.items()]),
            "cells": as_json(cells),
            "advance": 1 if next_call else 0,
            "guard": as_json(progress.guard.model_dump(mode="json", exclude_defaults=True)) if next_call else None,
            "call": call,
            "first": outcomes[0].id if outcomes else None,
            "fence": lease.fence,
        }
        | start_parameters(next_call),
        OUTCOME_LANDED,
        on,
    )
    crashpoint("D7.after" if next_call else "D6.after")
    if call is not None:
        progress.step, progress.call_id = progress.step + 1, call
    return pulse


def outcome_landed(lease: Lease, action_id: UUID) -> Pulse | None:
    """Whether the transaction that recorded this outcome was committed, after its connection was lost."""
    return landed(lease, OUTCOME_LANDED, {"call": None, "first": action_id})


CALL_AGAIN = f"""
WITH r AS (UPDATE memory_agentrun AS run SET {TOTALS} WHERE {FENCE} RETURNING run.id, thread_id, step, status, metered),
{SETTLE_CALL},
n AS ({START_CALL.format(id="next", attempt="%(fence)s")})
SELECT {PULSE} FROM r
"""


def call_again(lease: Lease, failed: Settled, next_call: NextCall) -> Pulse:
    """A model call failed and is repeated within the lease: close its row, start the next."""
    following = new_id()
    crashpoint("D2.before")
    pulse = fenced(
        CALL_AGAIN,
        lease,
        settle_parameters(lease, failed) | start_parameters(next_call) | {"next": following, "fence": lease.fence},
        "EXISTS (SELECT FROM agents_modelcall WHERE id = %(next)s)",
    )
    crashpoint("D2.after")
    lease.progress.call_id = following
    return pulse


QUARANTINE = f"""
WITH r AS (
  UPDATE memory_agentrun AS run SET step = step WHERE {FENCE} RETURNING run.id, thread_id, step, status, metered),
h AS (
  UPDATE memory_historyentry SET quarantine = %(rung)s FROM r
  WHERE memory_historyentry.thread_id = r.thread_id AND seq = ANY(%(places)s))
SELECT {PULSE} FROM r
"""


def quarantine(lease: Lease, places: Sequence[int], rung: str) -> Pulse:
    """Mark the entries at these places of the history: a server took them only when they were this plain."""
    return fenced(QUARANTINE, lease, {"places": list(places), "rung": rung}, "false")  # twice is as good as once
