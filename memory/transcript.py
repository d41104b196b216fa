"""llm_history as it is stored: read once when a run begins, then kept in memory and appended to."""

from dataclasses import dataclass
from uuid import UUID

from memory import pool
from memory.messages import BLOCKS, Message
from memory.repair import repaired

LOAD = """
SELECT seq, role, blocks FROM memory_historyentry WHERE thread_id = %(thread)s AND seq >= %(from)s ORDER BY seq
"""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages for the model, and the place of the next entry."""

    messages: list[Message]
    next_seq: int


def load(thread_id: UUID, from_seq: int) -> Transcript:
    """Read a thread's live session, grammatical whatever a crash may have left behind. Read after the claim: an entry
    of the run's former worker may have been committed at the last moment.

    Args:
        from_seq: where the session begins (see `Thread`).
    """
    rows = pool.execute(LOAD, {"thread": thread_id, "from": from_seq})
    messages = [Message(role=role, blocks=BLOCKS.validate_python(blocks)) for _, role, blocks in rows]
    return Transcript(repaired(messages), rows[-1][0] + 1 if rows else from_seq)
