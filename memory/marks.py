"""The mark of a thread: where text of strangers came from that its agent has read (mission D10, threat T10).

It stays until a person takes it off, because what was read lives on in the history, in summaries and notes. It goes
with what one agent hands to another: instructions down, reports up.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from memory import pool
from memory.text import clip

MOST = 50
LENGTH = 120
"""Of the name of a source. Characters."""

# The row is read anew once it is locked, so two that mark at once lose nothing.
MARK = f"""
UPDATE memory_thread SET sources = sources || (
  SELECT coalesce(jsonb_agg(source), '[]') FROM jsonb_array_elements(%(sources)s) AS source
  WHERE NOT sources @> jsonb_build_array(source))
WHERE id = ANY(%(threads)s) AND NOT sources @> %(sources)s AND jsonb_array_length(sources) < {MOST}
"""  # noqa: S608 (a constant)


def names(sources: Iterable[str]) -> list[str]:
    """Names of sources as they are kept: each once, on one line, and not too long."""
    return list(dict.fromkeys(clip(source, LENGTH) for source in sources))


def merged(*several: Sequence[str]) -> list[str]:
    """All sources of what was made from several texts."""
    return names(source for sources in several for source in sources)[:MOST]


def mark(
    thread_id: UUID, sources: Iterable[str], on: Connection[Any] | None = None, above: Iterable[UUID] = ()
) -> None:
    """Add to a thread's mark.

    Args:
        above: threads that it works for: what it does is told there before it reports.
        on: the connection of an open transaction, which has not locked a run of the thread before the thread; None
            commits by itself.
    """
    parameters = {"threads": [thread_id, *above], "sources": Jsonb(names(sources))}
    if on is None:
        pool.execute(MARK, parameters)
    else:
        pool.execute_on(on, MARK, parameters)
