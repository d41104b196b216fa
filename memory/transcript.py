"""llm_history as it is stored: read once when a run begins, then kept in memory and appended to."""

from dataclasses import dataclass
from uuid import UUID

from memory import pool
from memory.messages import BLOCKS, Message
from memory.repair import repaired

LOAD = "SELECT seq, role, blocks FROM memory_historyentry WHERE thread_id = %(thread)s ORDER BY seq"


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages for the model, and the place of the next entry. With an open reply, the messages end with it, and
    the places of its results follow on its own."""

    messages: list[Message]
    next_seq: int
    reply_seq: int = 0


def load(thread_id: UUID, *, open_reply: bool = False) -> Transcript:
    """Read a thread's history, grammatical whatever a crash may have left behind. Read after the claim: an entry of
    the run's former worker may have been committed at the last moment.

    Args:
        open_reply: the calls of the last reply are still to be answered (some may be): leave their results out.
    """
    rows = pool.execute(LOAD, {"thread": thread_id})
    messages = [Message(role=role, blocks=BLOCKS.validate_python(blocks)) for _, role, blocks in rows]
    next_seq = rows[-1][0] + 1 if rows else 1
    if not open_reply:
        return Transcript(repaired(messages), next_seq)
    at = max(place for place, message in enumerate(messages) if message.calls)
    reply_seq, reply = rows[at][0], messages[at]
    after = reply_seq + 1 + len(reply.calls)
    return Transcript([*repaired(messages[:at]), reply], max(next_seq, after), reply_seq)
