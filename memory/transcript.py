"""llm_history as it is stored: read once when a run begins, then kept in memory and appended to.

Rows are never rewritten, so a worker keeps the past of the conversations that it has had last, and the next run reads
only what was added: a step costs the same at entry 5 and at entry 5,000 (docs/performance.md).
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from memory import pool
from memory.messages import BLOCKS, Message
from memory.repair import repaired

# What a worker keeps of all conversations. Characters; each is in memory about three times.
KEPT: Final = 8_000_000

LOAD = """
SELECT seq, role, blocks::text FROM memory_historyentry WHERE thread_id = %(thread)s AND seq >= %(first)s ORDER BY seq
"""


@dataclass(slots=True)
class Past:
    """The beginning of a session that no later row can change: whole turns, grammatical as they are stored.

    from_seq: where the session begins (see `Thread`). memo: what adapters have made of the messages.
    """

    messages: list[Message] = field(default_factory=list)
    next_seq: int = 1
    from_seq: int = 1
    size: int = 0
    memo: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages for the model, the place of the next entry, and room for what adapters make of the messages."""

    messages: list[Message]
    next_seq: int
    memo: dict[str, object]


class Shelf:
    """Pasts of conversations, each taken by one run at a time. Thread-safe; those not used for longest make room."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._pasts: OrderedDict[UUID, Past] = OrderedDict()
        self._size = 0

    def take(self, thread_id: UUID) -> Past:
        with self._lock:
            past = self._pasts.pop(thread_id, None)
            self._size -= past.size if past else 0
        return past or Past()

    def give(self, thread_id: UUID, past: Past) -> None:
        with self._lock:
            replaced = self._pasts.pop(thread_id, None)
            self._pasts[thread_id] = past
            self._size += past.size - (replaced.size if replaced else 0)
            while self._size > self._limit:
                _, old = self._pasts.popitem(last=False)
                self._size -= old.size


_shelf = Shelf(KEPT)


@contextlib.contextmanager
def opened(thread_id: UUID, from_seq: int) -> Iterator[Transcript]:
    """Read a thread's live session for one run, grammatical whatever a crash may have left behind.

    Enter after the claim: an entry of the run's former worker may have been committed at the last moment.
    """
    past = _shelf.take(thread_id)
    if past.from_seq != from_seq:  # archived since
        past = _beginning(from_seq)
    try:
        yield _read(thread_id, past)
    finally:
        _shelf.give(thread_id, past)


def load(thread_id: UUID, from_seq: int) -> list[Message]:
    """Read a live session from its beginning, for those who are not its next run."""
    return _read(thread_id, _beginning(from_seq)).messages


def _beginning(from_seq: int) -> Past:
    return Past(next_seq=from_seq, from_seq=from_seq)


def _read(thread_id: UUID, past: Past) -> Transcript:
    rows = pool.execute(LOAD, {"thread": thread_id, "first": past.next_seq})
    fresh = [Message(role=role, blocks=BLOCKS.validate_json(blocks)) for _, role, blocks in rows]
    next_seq = rows[-1][0] + 1 if rows else past.next_seq
    turn = _last_turn(fresh)
    if repaired(fresh[:turn]) == fresh[:turn]:
        past.messages += fresh[:turn]
        past.size += sum(len(blocks) for _, _, blocks in rows[:turn])
        past.next_seq = rows[turn][0] if rows[turn:] else next_seq
        fresh = fresh[turn:]
    return Transcript(past.messages + repaired(fresh), next_seq, past.memo)


def _last_turn(messages: Sequence[Message]) -> int:
    """Where the last turn begins: with what a user said."""
    return next((at for at in reversed(range(len(messages))) if messages[at].role == "user"), 0)
