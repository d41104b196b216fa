"""llm_history as it is stored: read once when a run begins, then kept in memory and appended to."""

from uuid import UUID

from memory import pool
from memory.messages import BLOCKS, Message
from memory.repair import repaired

LOAD = "SELECT role, blocks FROM memory_historyentry WHERE thread_id = %(thread)s ORDER BY seq"


def load(thread_id: UUID) -> list[Message]:
    """The thread's messages for the model, grammatical whatever a crash may have left behind."""
    rows = pool.execute(LOAD, {"thread": thread_id})
    return repaired([Message(role=role, blocks=BLOCKS.validate_python(blocks)) for role, blocks in rows])
