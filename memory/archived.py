"""The entries of an archived session as values, and as the plain text that summaries and searches are made from."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, TypeAdapter

from memory.messages import Block, Message, Role
from memory.models import HistoryEntry
from memory.text import clip, shortened

SUMMARY_LENGTH = 2_000
# A tsvector holds a megabyte at most, and words that are all different fill it soonest (case STO-03). Characters.
TEXT_LENGTH = 150_000
PART_LENGTH = 5_000
_SPEAKERS = {"user": "User", "assistant": "Agent", "tool": "Tool result"}


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for a session. `model` is empty when none wrote it, `title` also when the model gave none."""

    text: str
    model: str = ""
    title: str = ""


class Entry(BaseModel):
    """One element of `AgentHistory.entries`: a row of the history as it was."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int
    role: Role
    blocks: tuple[Block, ...]
    run: UUID | None
    at: datetime

    @property
    def message(self) -> Message:
        return Message(role=self.role, blocks=self.blocks)


ENTRIES: TypeAdapter[list[Entry]] = TypeAdapter(list[Entry])


def entry_of(row: HistoryEntry) -> Entry:
    return Entry.model_validate(
        {"seq": row.seq, "role": row.role, "blocks": row.blocks, "run": row.run_id, "at": row.created_at}
    )


def conversation(entries: Iterable[Entry], part: int = PART_LENGTH) -> str:
    """Who said what, which tools were called and what they gave; each at most `part` characters."""
    return "\n".join(line for entry in entries for line in _lines(entry.message, part))


def searchable(entries: Iterable[Entry]) -> str:
    return conversation(entries)[:TEXT_LENGTH]


def fallback_summary(entries: Sequence[Entry]) -> Summary:
    """A summary that needs no model: the first and the last that the user said, and what was used (mission B7)."""
    messages = [entry.message for entry in entries]
    asked = [message.words for message in messages if message.role == "user"]
    tools = Counter(call.name for message in messages for call in message.calls)
    sentences = [f"{len(entries)} entries, {len(asked)} of them by the user."]
    if asked:
        sentences.append(f"It began with “{clip(asked[0], 300)}”")
    if len(asked) > 1:
        sentences.append(f"and ended with “{clip(asked[-1], 300)}”")
    if tools:
        sentences.append(f"Tools used: {', '.join(f'{name} ({n})' for name, n in tools.most_common(10))}.")
    return Summary(clip(" ".join(sentences), SUMMARY_LENGTH))


def _lines(message: Message, part: int) -> Iterable[str]:
    if words := message.words.strip():
        yield f"{_SPEAKERS[message.role]}: {shortened(words, part)}"
    if names := ", ".join(block.name for block in message.attached):
        yield f"Attached: {names}"
    for call in message.calls:
        yield f"Tool call: {call.name} {shortened(str(call.arguments), part)}"
