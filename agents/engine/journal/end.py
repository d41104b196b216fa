"""D8: the terminal state; and the other ways to let go of a run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from agents.engine.crashpoints import crashpoint
from agents.engine.journal.fragments import (
    CELLS_ANEW,
    CLOSE_CALLS,
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
from agents.engine.journal.surely import LET_GO, LOCK_THREAD, let_go_by, looked_up, surely
from memory import pool
from memory.ids import new_id
from memory.messages import Message
from memory.news import line

FINAL = f"""
WITH l AS (SELECT id FROM memory_thread WHERE id = %(thread)s FOR NO KEY UPDATE),
r AS (
  UPDATE memory_agentrun AS run SET status = %(status)s, reason = %(reason)s, error = %(error)s,
    step = greatest(run.step, %(iterations)s), lease_token = NULL, lease_until = NULL,
    finished_at = clock_timestamp(), {TOTALS}
  FROM l WHERE {FENCE}
  RETURNING run.id, run.thread_id, run.step, run.status, run.cost, run.cost_known),
{CLOSE_CALLS},
t AS (
  UPDATE memory_thread SET live_run = CASE WHEN pending > 0 THEN %(next_run)s::uuid END,
    news = news || CASE WHEN EXISTS (SELECT FROM d WHERE was = 'proposed') THEN %(withdrawn)s ELSE '' END FROM r
  WHERE memory_thread.id = r.thread_id RETURNING memory_thread.id, live_run),
n AS (
  INSERT INTO memory_agentrun (id, thread_id, status, trigger)
  SELECT live_run, id, 'queued', 'message' FROM t WHERE live_run IS NOT NULL),
{HISTORY}, {SETTLE_CALL}, {CELLS_ANEW.format(more="'{}'", where="")}
SELECT t.live_run, r.cost, r.cost_known, {NEXT_IN_LINE}, (SELECT array_agg(id) FROM d WHERE was = 'proposed') FROM r, t
"""

WITHDRAWN = line("What you had proposed in the turn that was stopped is withdrawn and was not executed.")


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
    """(D3 +) D8: the last entries and messages, the terminal state, and the next run when messages are pending.

    Approvals that nobody has decided end with the run, except those of proposed calls: they outlive it unless it was
    stopped, of which the thread's news tell.
    """
    entries = [
        entry(lease.progress.next_seq + place, message) for place, message in enumerate(messages) if message.blocks
    ]
    parameters = (
        fence_of(lease)
        | settle_parameters(lease, settled)
        | {
            "thread": lease.thread_id,
            "user": lease.user_id,
            "iterations": lease.progress.iterations,
            "status": status,
            "reason": reason,
            "error": error,
            "entries": as_json(entries),
            "cells": as_json(cells),
            "next_run": new_id(),
            "withdrawn": WITHDRAWN,
        }
    )

    def attempt() -> Final:
        return _final(execute(FINAL, parameters, on))

    crashpoint("D8.before")
    ended = attempt() if on is not None else surely(attempt, lambda: final_landed(lease, status))
    crashpoint("D8.after")
    return ended


ENDED = f"""
SELECT t.live_run, run.cost, run.cost_known, {NEXT_IN_LINE}, (
  SELECT array_agg(a.id) FROM agent_actions a JOIN tools_approval p ON p.action_id = a.id
  WHERE a.run_id = run.id AND a.status = 'cancelled' AND p.state = 'cancelled')
FROM memory_agentrun run JOIN memory_thread t ON t.id = run.thread_id WHERE {LET_GO} AND run.status = %(status)s
"""


def final_landed(lease: Lease, status: str) -> Final | None:
    """What `final` has come to when it was committed, after its connection was lost. None: it was not."""
    parameters = let_go_by(lease) | {"status": status}
    rows = looked_up(LOCK_THREAD, ENDED, parameters)
    return _final(rows) if rows else None


def _final(rows: list[pool.Row]) -> Final:
    if not rows:
        raise LeaseLost
    next_run, cost, known, in_line, withdrawn = rows[0]
    return Final(next_run, cost if known else None, in_line, withdrawn or ())


WAITING = """jsonb_build_object('next_at', r.due_at)"""

LETS_GO = f"""
WITH l AS (SELECT id FROM memory_thread WHERE id = %(thread)s FOR NO KEY UPDATE),
r AS (
  UPDATE memory_agentrun AS run SET lease_token = NULL,
    status = CASE run.status WHEN 'running' THEN %(waits)s::text ELSE run.status END,
    due_at = CASE run.status WHEN 'running' THEN clock_timestamp() + %(seconds)s::float * interval '1 second' END,
    lease_until = CASE run.status WHEN 'running' THEN NULL ELSE clock_timestamp() END{{more}}
  FROM l WHERE {FENCE}
  RETURNING run.id, run.thread_id, run.status, run.due_at),
{{call}}{CELLS_ANEW.format(more=WAITING, where="WHERE r.status = %(waits)s")}
SELECT (SELECT created_at FROM m), (SELECT metadata FROM m), {NEXT_IN_LINE} FROM r
"""
LATER = LETS_GO.format(
    more=f", retries = run.retries + (%(waits)s::text = 'retry_wait')::int, {TOTALS}", call=f"{SETTLE_CALL}, "
)
# The model call that may be open stays so, as after a death: the next claim settles it.
LEFT = LETS_GO.format(more="", call="")


class Postponed(NamedTuple):
    """The message of a run that waits, as it was stored. Both are None when the run was stopped meanwhile: it is then
    let go of, to be settled by whoever claims it. `in_line` as in `Final`."""

    at: datetime | None
    metadata: dict[str, Any] | None
    in_line: UUID | None


WAITS = f"""
SELECT m.created_at, m.metadata, {NEXT_IN_LINE}
FROM memory_agentrun run LEFT JOIN memory_threadmessage m ON m.id = %(cell)s AND run.status = %(waits)s
WHERE {LET_GO} AND run.finished_at IS NULL
"""


def wait(lease: Lease, status: str, settled: Settled | None, seconds: float | None, cell: Cell) -> Postponed:
    """Let go of a run until `seconds` from now (None: until somebody changes something), because its model failed
    (`status` retry_wait) or a budget is spent (waiting_budget). The run stays its thread's live one, so that messages
    which come meanwhile join it. `cell` says so in the thread; its `next_at` is PostgreSQL's.

    Args:
        settled: None: it waits for room in the database, which is no try of its model, and nobody here knows what its
            model call came to.
    """
    parameters = let_go_by(lease) | {"seconds": seconds, "cells": as_json([cell]), "cell": cell.id, "waits": status}
    parameters |= fence_of(lease) | (settle_parameters(lease, settled) if settled else {})
    sql = LATER if settled else LEFT
    crashpoint("wait.before")
    rows = surely(lambda: execute(sql, parameters, None), lambda: looked_up(LOCK_THREAD, WAITS, parameters))
    crashpoint("wait.after")
    if not rows:
        raise LeaseLost
    return Postponed(*rows[0])


RETRY_NOW = """
UPDATE memory_agentrun SET status = 'queued', due_at = NULL
WHERE id = %(run)s AND status IN ('retry_wait', 'waiting_budget') RETURNING id
"""


def retry_now(run_id: UUID) -> bool:
    """End the wait of a run. False: it does not wait."""
    return bool(pool.execute(RETRY_NOW, {"run": run_id}))


GIVE_BACK = f"""
UPDATE memory_agentrun AS run SET status = CASE run.status WHEN 'running' THEN 'queued' ELSE run.status END,
  lease_token = NULL, lease_until = clock_timestamp(),
  due_at = clock_timestamp() + %(seconds)s::float * interval '1 second'
WHERE {FENCE} RETURNING run.id"""

HAND_OVER = f"""
WITH r AS ({GIVE_BACK})
UPDATE agents_modelcall SET status = 'cancelled', cost = 0, finished_at = clock_timestamp()
FROM r WHERE run_id = r.id AND agents_modelcall.status = 'started'
"""


def hand_over(lease: Lease) -> None:
    """Give a run back at a step boundary, because this worker shuts down."""
    pool.execute(HAND_OVER, fence_of(lease) | {"seconds": 0})


def give_back(lease: Lease, seconds: float = 0) -> None:
    """Give a run back in the middle of a step, for others to look for it in so many seconds. That is no recovery: its
    worker lives. What is open stays so, and the next claim finds it as after a death."""
    pool.execute(GIVE_BACK, fence_of(lease) | {"seconds": seconds})


STOP = """
UPDATE memory_agentrun SET status = 'cancelling', due_at = NULL,
  lease_until = CASE WHEN lease_token IS NULL THEN clock_timestamp() ELSE lease_until END
WHERE id = %(run)s AND status IN ('queued', 'running', 'retry_wait', 'waiting_approval', 'waiting_budget')
RETURNING lease_token IS NOT NULL
"""


def stop(run_id: UUID) -> bool | None:
    """Ask for a run's end. None: it is ending or over already; else whether a worker holds it. One that nobody holds
    can be claimed at once and is settled by whoever does, like every other."""
    rows = pool.execute(STOP, {"run": run_id})
    return rows[0][0] if rows else None
