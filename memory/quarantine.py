"""Entries of the history that a server did not take, and the way back."""

from uuid import UUID

from memory import pool
from memory.degrade import Remedy, degraded
from memory.models import HistoryEntry, Thread
from memory.transcript import message_of

SUSPECTS = """
SELECT seq, role, blocks::text, quarantine FROM memory_historyentry
WHERE thread_id = %(thread)s AND seq >= (SELECT from_seq FROM memory_thread WHERE id = %(thread)s)
  AND (%(whole)s OR seq >= coalesce((
    SELECT max(seq) FROM memory_historyentry WHERE thread_id = %(thread)s AND role = 'assistant'), 0))
ORDER BY seq
"""


def culprits(thread_id: UUID, remedy: Remedy) -> list[int]:
    """The places of the live session's entries that `remedy` makes plainer than they were seen so far."""
    rows = pool.execute(SUSPECTS, {"thread": thread_id, "whole": remedy.whole})
    seen = [(seq, message_of(role, blocks, mark)) for seq, role, blocks, mark in rows]
    return [seq for seq, message in seen if degraded(message, remedy.rung) != message]


def release(thread: Thread) -> int:
    """Let the model see everything of a thread as it is again. Returns how many entries were in quarantine."""
    return HistoryEntry.objects.filter(thread=thread).exclude(quarantine="").update(quarantine="")
