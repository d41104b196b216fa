"""llm_history as it is stored: read once when a run begins, then kept in memory and appended to.

Rows are never rewritten, so a worker keeps the past of the conversations that it has had last, and the next run reads
only what was added: a step costs the same at entry 5 and at entry 5,000 (docs/performance.md).
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from memory import pool
from memory.compaction import characters
from memory.degrade import Rung, degraded
from memory.grammar import Grammar
from memory.media import within_size
from memory.messages import BLOCKS, Message, Role, ToolResult
from memory.repair import repaired, unanswered

# What a worker keeps of all conversations. Characters; each is in memory about three times.
KEPT: Final = 8_000_000
# What a message takes beside its characters, in the room of as many of them.
EACH: Final = 100

# What was added, and what was put in quarantine meanwhile.
LOAD = """
SELECT seq, role, blocks::text, quarantine FROM memory_historyentry
WHERE thread_id = %(thread)s AND seq >= %(first)s
UNION ALL
SELECT seq, role, blocks::text, quarantine FROM memory_historyentry
WHERE thread_id = %(thread)s AND seq >= %(from)s AND seq < %(first)s AND quarantine <> ''
ORDER BY seq
"""

type Recorded = Callable[[UUID, Sequence[str]], Mapping[str, ToolResult]]


@dataclass(slots=True)
class Past:
    """The beginning of a session that no later row can change: whole turns, seen as they are stored.

    from_seq: where the session begins (see `Thread`). grammar: has read the messages. memo: what adapters have made
        of them, and of what followed them in the last run. size, following: of both, as `KEPT` counts.
    """

    messages: list[Message] = field(default_factory=list)
    next_seq: int = 1
    from_seq: int = 1
    size: int = 0
    following: int = 0
    grammar: Grammar = field(default_factory=Grammar)
    memo: dict[str, object] = field(default_factory=dict)

    @property
    def room(self) -> int:
        return self.size + self.following


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages for the model, the place of the next entry, and what the run goes on with: the grammar, which has
    read them, and room for what adapters make of them. With an open reply, which the grammar has not read, the messages
    end with it, and the places of its results follow on its own."""

    messages: list[Message]
    next_seq: int
    grammar: Grammar
    memo: dict[str, object]
    reply_seq: int = 0


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
            self._size -= past.room if past else 0
        return past or Past()

    def give(self, thread_id: UUID, past: Past) -> None:
        with self._lock:
            replaced = self._pasts.pop(thread_id, None)
            self._pasts[thread_id] = past
            self._size += past.room - (replaced.room if replaced else 0)
            while self._size > self._limit:
                _, old = self._pasts.popitem(last=False)
                self._size -= old.room


_shelf = Shelf(KEPT)


@contextlib.contextmanager
def opened(thread_id: UUID, from_seq: int, recorded: Recorded, *, open_reply: bool = False) -> Iterator[Transcript]:
    """Read a thread's live session for one run, grammatical whatever a crash may have left behind.

    Enter after the claim: an entry of the run's former worker may have been committed at the last moment.

    Args:
        recorded: asked when something is amiss: what is known of the calls with these ids, which have no result.
        open_reply: the calls of the last reply are still to be answered (some may be): leave their results out.
    """
    past = _shelf.take(thread_id)
    if past.from_seq != from_seq:  # archived since
        past = _beginning(from_seq)
    rows = _rows(thread_id, past)
    if rows and rows[0][0] < past.next_seq:  # in quarantine since
        past = _beginning(from_seq)
        rows = _rows(thread_id, past)
    _move_turns(rows, past)
    history = (_with_open_reply if open_reply else _transcript)(thread_id, past, rows, recorded)
    try:
        yield history
    finally:
        if past.messages:  # the first turn of a session is read again: there is nothing that it would spare
            past.following = sum(EACH + characters(message) for message in history.messages[len(past.messages) :])
            _shelf.give(thread_id, past)


def load(thread_id: UUID, from_seq: int, recorded: Recorded) -> list[Message]:
    """Read a live session from its beginning, for those who are not its next run. Arguments as of `opened`."""
    past = _beginning(from_seq)
    return _transcript(thread_id, past, _rows(thread_id, past), recorded).messages


def message_of(role: Role, blocks: str, quarantine: str) -> Message:
    """A row (its blocks as JSON) as the model sees it: an entry in quarantine as plain as its mark says."""
    message = within_size(Message(role=role, blocks=BLOCKS.validate_json(blocks)))
    return degraded(message, Rung(quarantine)) if quarantine else message


def _beginning(from_seq: int) -> Past:
    return Past(next_seq=from_seq, from_seq=from_seq)


def _rows(thread_id: UUID, past: Past) -> list[pool.Row]:
    return pool.execute(LOAD, {"thread": thread_id, "from": past.from_seq, "first": past.next_seq})


def _move_turns(rows: list[pool.Row], past: Past) -> None:
    """Move whole turns from the rows to the past, if they are seen as they are stored."""
    turn = next((at for at in reversed(range(len(rows))) if rows[at][1] == "user"), 0)
    if any(quarantine for *_, quarantine in rows[:turn]):
        return
    messages = [message_of(*row[1:]) for row in rows[:turn]]
    if grown := past.grammar.grown(messages):
        past.grammar = grown
        past.messages += messages
        past.size += sum(EACH + len(blocks) for _, _, blocks, _ in rows[:turn])
        past.next_seq = rows[turn][0] if rows else past.next_seq
        del rows[:turn]


def _transcript(thread_id: UUID, past: Past, rows: Sequence[pool.Row], recorded: Recorded) -> Transcript:
    fresh, next_seq = [message_of(*row[1:]) for row in rows], rows[-1][0] + 1 if rows else past.next_seq
    if grammar := past.grammar.grown(fresh):
        return Transcript(past.messages + fresh, next_seq, grammar, past.memo)
    known = recorded(thread_id, unanswered(fresh))
    fixed = repaired(fresh, known)
    if grammar := past.grammar.grown(fixed):
        return Transcript(past.messages + fixed, next_seq, grammar, past.memo)
    # A call of the past is made again under its old id: only the whole shows that.
    return Transcript(repaired([*past.messages, *fresh], known), next_seq, Grammar(), past.memo)


def _with_open_reply(thread_id: UUID, past: Past, rows: Sequence[pool.Row], recorded: Recorded) -> Transcript:
    messages = [message_of(*row[1:]) for row in rows]
    at = max(place for place, message in enumerate(messages) if message.calls)
    before, reply, reply_seq = _transcript(thread_id, past, rows[:at], recorded), messages[at], rows[at][0]
    next_seq = max(rows[-1][0] + 1, reply_seq + 1 + len(reply.calls))
    return Transcript([*before.messages, reply], next_seq, before.grammar, past.memo, reply_seq)
