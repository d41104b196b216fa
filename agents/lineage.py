"""Who works for whom: the threads of tasks below a thread, and those above it (mission A3)."""

from uuid import UUID

from memory import pool

BELOW = """below(id) AS (
  SELECT %(thread)s::uuid UNION SELECT t.thread_id FROM agents_agenttask t JOIN below ON t.parent_id = below.id)"""
"""For WITH RECURSIVE: a thread and those of the tasks that were sent off from it, however far down."""

ABOVE = """above(id) AS (
  SELECT %(thread)s::uuid UNION SELECT t.parent_id FROM agents_agenttask t JOIN above ON t.thread_id = above.id)"""
"""For WITH RECURSIVE: a thread and those that it works for."""


def threads_below(thread_id: UUID) -> list[UUID]:
    """A thread and those of its tasks, as an open transaction of the ORM sees them."""
    return _threads(f"WITH RECURSIVE {BELOW} SELECT id FROM below", thread_id)


def threads_above(thread_id: UUID) -> list[UUID]:
    """A thread and those that it works for, as an open transaction of the ORM sees them."""
    return _threads(f"WITH RECURSIVE {ABOVE} SELECT id FROM above", thread_id)


def _threads(sql: str, thread_id: UUID) -> list[UUID]:
    return [each for (each,) in pool.execute_on(pool.orm_connection(), sql, {"thread": thread_id})]
