"""D0: a message is accepted, or an agent is woken."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import Connection

from agents.engine.crashpoints import crashpoint
from agents.engine.journal.fragments import QUEUED_OF_USER, as_json, execute
from agents.engine.journal.rows import NOTHING, AcceptedRow
from agents.engine.journal.surely import LOCK_THREAD, looked_up, surely
from memory import pool
from memory.models import Source, Trigger

# `w` sees the run as it was before this statement waited for its thread, and it may have begun to wait meanwhile. So it
# takes every live run, and decides by what it finds once the row is locked.
ACCEPT = f"""
WITH t AS (
  UPDATE memory_thread SET live_run = coalesce(live_run, %(run)s), pending = pending + 1, active_at = clock_timestamp()
  WHERE id = %(thread)s AND NOT EXISTS (
    SELECT FROM memory_threadmessage WHERE thread_id = %(thread)s AND client_message_id = %(client)s::uuid)
  AND (%(most_waiting)s = 0 OR pending < %(most_waiting)s)
  AND (live_run IS NOT NULL OR %(most)s = 0
    OR (SELECT count(*) FROM {QUEUED_OF_USER.format(user="memory_thread.user_id")}) < %(most)s)
  RETURNING live_run),
r AS (
  INSERT INTO memory_agentrun (id, thread_id, status, trigger, context_type)
  SELECT live_run, %(thread)s, 'queued', %(trigger)s, %(context_type)s FROM t WHERE live_run = %(run)s),
w AS (
  UPDATE memory_agentrun AS run SET
    status = CASE WHEN run.status IN ('waiting_approval', 'waiting_budget') THEN 'queued' ELSE run.status END,
    due_at = CASE WHEN run.status IN ('waiting_approval', 'waiting_budget') THEN NULL ELSE run.due_at END FROM t
  WHERE run.id = t.live_run AND run.status IN ('queued', 'running', 'waiting_approval', 'waiting_budget')
  RETURNING old.status IN ('waiting_approval', 'waiting_budget') AS woken),
m AS (
  INSERT INTO memory_threadmessage
    (id, thread_id, run_id, source, message_type, content, metadata, processed, client_message_id)
  SELECT %(message)s, %(thread)s, live_run, %(source)s, 'text', %(content)s, %(metadata)s, false, %(client)s::uuid
  FROM t RETURNING created_at)
SELECT t.live_run, t.live_run = %(run)s, coalesce((SELECT woken FROM w), false), m.created_at FROM t, m
"""


ACCEPTED = """
SELECT m.run_id, r.id = %(run)s, r.id <> %(run)s AND r.status = 'queued', m.created_at
FROM memory_threadmessage m JOIN memory_agentrun r ON r.id = m.run_id WHERE m.id = %(message)s
"""
# Somebody waits for the answer, so it is tried once more only: on a new connection, as after a restart of PostgreSQL.
ONCE_MORE = (0.1,)


def accept(
    thread_id: UUID,
    message_id: UUID,
    run_id: UUID,
    content: str,
    client_message_id: UUID | None = None,
    *,
    source: str = Source.USER,
    trigger: str = Trigger.MESSAGE,
    context_type: str = "",
    metadata: Mapping[str, object] = NOTHING,
    most: int = 0,
    most_waiting: int = 0,
    on: Connection[Any] | None = None,
) -> AcceptedRow | None:
    """D0: the message, and a queued run when none is live; one that waits for approvals goes on. None: this client id
    was accepted before, or the thread is gone, or the user has `most` runs in the queue and this would be one more, or
    `most_waiting` messages wait for this agent already.

    Args:
        trigger, context_type: of the new run, if there is one.
        most, most_waiting: 0 sets no limit.
        on: the connection of an open transaction that the message belongs to; None commits by itself.

    Raises:
        psycopg.errors.UniqueViolation: the same client id was accepted in this very moment.
    """
    parameters = {
        "thread": thread_id,
        "message": message_id,
        "run": run_id,
        "content": content,
        "client": client_message_id,
        "source": source,
        "trigger": trigger,
        "context_type": context_type,
        "metadata": as_json(metadata),
        "most": most,
        "most_waiting": most_waiting,
    }
    crashpoint("D0.before")
    if on is None:
        rows = surely(
            lambda: execute(ACCEPT, parameters, None), lambda: looked_up(LOCK_THREAD, ACCEPTED, parameters), ONCE_MORE
        )
    else:
        rows = execute(ACCEPT, parameters, on)
    crashpoint("D0.after")
    return AcceptedRow(*rows[0]) if rows else None


WAKE = """
WITH t AS (
  UPDATE memory_thread SET live_run = coalesce(live_run, %(run)s) WHERE id = %(thread)s RETURNING live_run),
r AS (
  INSERT INTO memory_agentrun (id, thread_id, status, trigger, context_type)
  SELECT live_run, %(thread)s, 'queued', %(trigger)s, %(context_type)s FROM t WHERE live_run = %(run)s)
SELECT live_run, live_run = %(run)s FROM t
"""


def wake(thread_id: UUID, run_id: UUID, trigger: str, context_type: str = "") -> tuple[UUID, bool]:
    """Queue a run without a message. Returns the live run's id and whether it is the new one."""
    parameters = {"thread": thread_id, "run": run_id, "trigger": trigger, "context_type": context_type}
    live, fresh = pool.execute(WAKE, parameters)[0]
    return live, fresh
