"""llm_history as it is stored: read once when a run begins, then kept in memory and appended to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from memory import pool
from memory.degrade import Rung, degraded
from memory.media import within_size
from memory.messages import BLOCKS, Message, Role, ToolResult
from memory.repair import is_whole, repaired, unanswered

LOAD = "SELECT seq, role, blocks, quarantine FROM memory_historyentry WHERE thread_id = %(thread)s ORDER BY seq"

type Recorded = Callable[[UUID, Sequence[str]], Mapping[str, ToolResult]]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages for the model, and the place of the next entry."""

    messages: list[Message]
    next_seq: int


def load(thread_id: UUID, recorded: Recorded) -> Transcript:
    """Read a thread's history, grammatical whatever a crash may have left behind. Read after the claim: an entry of
    the run's former worker may have been committed at the last moment.

    Args:
        recorded: asked when something is amiss: what is known of the calls with these ids, which have no result.
    """
    rows = pool.execute(LOAD, {"thread": thread_id})
    messages = [message_of(*row[1:]) for row in rows]
    if not is_whole(messages):
        messages = repaired(messages, recorded(thread_id, unanswered(messages)))
    return Transcript(messages, rows[-1][0] + 1 if rows else 1)


def message_of(role: Role, blocks: object, quarantine: str) -> Message:
    """A row as the model sees it: an entry in quarantine as plain as its mark says."""
    message = within_size(Message(role=role, blocks=BLOCKS.validate_python(blocks)))
    return degraded(message, Rung(quarantine)) if quarantine else message
