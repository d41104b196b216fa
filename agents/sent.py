"""What a call of a model sent, put together again from what is on record: section by section, with its size (mission
E2). Tokens are estimates, by the same measure as `agents.providers.estimates`.

The vendor's own form is not on record: adapters write the same messages as each of them wants it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from django.conf import settings

from agents.engine.shortening import CLIPPED
from agents.models import CallStatus, ModelCall, Prompt
from agents.providers.estimates import PER_CALL, PER_MESSAGE, of_blocks, of_text, text_of
from memory.compaction import clipped
from memory.encoding import dumps
from memory.grammar import Grammar
from memory.llm_transcript import indented, part
from memory.messages import Block, Image, Message, Text
from memory.models import HistoryEntry
from memory.transcript import message_of

# A section that stands by itself: both tags at the beginnings or ends of lines.
SECTION = re.compile(r"^<(\w+)(?: [^>\n]*)?>.*?</\1>$", re.MULTILINE | re.DOTALL)

OLD = "It was made before prompts were kept."
DELETED = "Its agent was deleted, and with it what it was sent."
UNDER_WAY = "It is under way; what stands here is what there is to send."
NEVER_SENT = "It was not sent: its worker shut down before."
CRASHED = "Its worker ended before it did; messages that joined it at the last moment are missing here."
GAPS = "Calls without a result were answered in what was sent, because vendors refuse them otherwise."
PLAINER = "sent this plain since a model's server refused it; earlier calls had all of it"
CUT = f"sent cut to {CLIPPED:,} characters, because the conversation was too long for the model"
UNKEPT = "Not kept any more: it was not sent for {} days (WAYMARK_PROMPTS_KEPT_DAYS)."
UNKEPT_BEFORE = "Not kept any more: it was deleted by an earlier setting of WAYMARK_PROMPTS_KEPT_DAYS."
PICTURE = "a picture; models that see none, or get too many, are sent words in its place"


@dataclass(frozen=True, slots=True)
class Section:
    """characters: as sent; `text` may be set out more clearly."""

    title: str
    text: str
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Group:
    """Sections that are sent as one: the system prompt, the tools, or a message. note: how it was sent otherwise, or
    why it is not there. around: tokens beside theirs."""

    title: str
    sections: Sequence[Section]
    role: str = ""
    note: str = ""
    around: int = 0

    @property
    def characters(self) -> int:
        return sum(section.characters for section in self.sections)

    @property
    def tokens(self) -> int:
        return self.around + sum(section.tokens for section in self.sections)


@dataclass(frozen=True, slots=True)
class Sent:
    """notes: what is not known, or was sent otherwise than it stands here."""

    system: Group
    tools: Group
    messages: Sequence[Group]
    notes: Sequence[str] = ()

    @property
    def history(self) -> Group:
        """All messages as one."""
        sections = [*chain.from_iterable(message.sections for message in self.messages)]
        gone = "" if sections else "; ".join(message.note for message in self.messages)
        return Group("Messages", sections, note=gone, around=sum(message.around for message in self.messages))

    @property
    def parts(self) -> Sequence[Group]:
        return self.system, self.tools, self.history

    @property
    def is_whole(self) -> bool:
        """Whether none of it was deleted since."""
        return not any(group.note for group in self.parts)

    @property
    def characters(self) -> int:
        return sum(group.characters for group in self.parts)

    @property
    def tokens(self) -> int:
        return PER_CALL + sum(group.tokens for group in self.parts)


def sent_by(call: ModelCall) -> Sent:
    """What a call sent, in two queries. `call` has its run and thread."""
    thread = call.run.thread if call.run else call.thread
    kept = {bytes(row.digest): row.text for row in Prompt.objects.filter(thread=thread, digest__in=_digests(call))}
    text = partial(_text, kept)

    def gone(digest: bytes | memoryview | None) -> str:
        return _gone(kept, digest) if thread else ""

    system = Group(
        "System prompt", [_section(*each) for each in sections_of(text(call.system))], note=gone(call.system)
    )
    tools = Group("Tools", [_tool(tool) for tool in json.loads(text(call.tools) or "[]")], note=gone(call.tools))
    if call.run is None:
        asked = [*_asked(text(call.words), gone(call.words))]
        return Sent(system, tools, asked, [] if asked else [OLD if thread else DELETED])
    entries = _entries(call)
    messages = [_as_sent(call, entry) for entry in entries]
    groups = [_message(call, *each) for each in zip(entries, messages, strict=True)]
    return Sent(system, tools, groups, [*_notes(call, messages)])


def sections_of(text: str) -> list[tuple[str, str]]:
    """The sections of a prompt by the name of their tag, "text" for what stands between them; together they are all
    of it."""
    found: list[tuple[str, str]] = []
    at = 0
    for section in SECTION.finditer(text):
        if text[at : section.start()].strip():
            found.append(("text", text[at : section.start()]))
            at = section.start()
        found.append((section[1], text[at : section.end()]))
        at = section.end()
    if text[at:].strip():
        found.append(("text", text[at:]))
    elif found:
        found[-1] = (found[-1][0], found[-1][1] + text[at:])
    return found


def _digests(call: ModelCall) -> list[bytes]:
    return [bytes(digest) for digest in (call.system, call.tools, call.words) if digest]


def _text(kept: dict[bytes, str], digest: bytes | memoryview | None) -> str:
    return kept.get(bytes(digest), "") if digest else ""


def _gone(kept: dict[bytes, str], digest: bytes | memoryview | None) -> str:
    """Why a text that was sent is not there."""
    if digest is None or bytes(digest) in kept:
        return ""
    days = settings.WAYMARK_PROMPTS_KEPT_DAYS
    return UNKEPT.format(days) if days else UNKEPT_BEFORE


def _asked(words: str, note: str) -> Iterator[Group]:
    """What was asked beside the runs."""
    if words:
        yield Group("asked", [_section("words", words)], "user", around=PER_MESSAGE)
    elif note:
        yield Group("asked", [], note=note)


def _entries(call: ModelCall) -> list[HistoryEntry]:
    """The part of the history that was sent; rows of sessions that were archived since are still there."""
    if call.from_seq is None or call.run is None:
        return []
    entries = HistoryEntry.objects.filter(thread=call.run.thread_id, seq__gte=call.from_seq).order_by("seq")
    if call.until_seq is not None:
        entries = entries.filter(seq__lt=call.until_seq)
    elif call.status != CallStatus.STARTED:
        entries = entries.filter(created_at__lte=call.created_at)
    return list(entries)


def _as_sent(call: ModelCall, entry: HistoryEntry) -> Message:
    message = message_of(entry.role, dumps(entry.blocks).decode(), entry.quarantine)  # type: ignore[arg-type]
    return clipped([message], CLIPPED)[0] if _is_cut(call, entry) else message


def _is_cut(call: ModelCall, entry: HistoryEntry) -> bool:
    return call.clipped_seq is not None and entry.seq < call.clipped_seq


def _notes(call: ModelCall, messages: Sequence[Message]) -> Iterator[str]:
    if call.system is None:
        yield OLD
        return
    if call.until_seq is None:
        yield {CallStatus.STARTED: UNDER_WAY, CallStatus.CANCELLED: NEVER_SENT}.get(CallStatus(call.status), CRASHED)
    if Grammar().grown(messages) is None:
        yield GAPS


def _message(call: ModelCall, entry: HistoryEntry, message: Message) -> Group:
    notes = [
        f"quarantine ({entry.quarantine}): {PLAINER}" if entry.quarantine else "",
        CUT if _is_cut(call, entry) and entry.role != "user" else "",
        PICTURE if any(isinstance(block, Image) for block in message.blocks) else "",
    ]
    sections = [*chain.from_iterable(_block(message, block) for block in message.blocks)]
    note = "; ".join(filter(None, notes))
    return Group(f"{entry.seq} · {entry.role}", sections, entry.role, note, PER_MESSAGE)


def _block(message: Message, block: Block) -> Iterator[Section]:
    """The context and the news that precede the words of a message are shown by their sections."""
    if isinstance(block, Text) and message.role == "user" and block is not message.blocks[-1]:
        yield from (_section(*each) for each in sections_of(block.text))
        return
    shown, words = part(block.model_dump(mode="json")), text_of(block)
    yield Section(shown.title or "text", shown.text, len(words), of_blocks([block]))


def _section(title: str, text: str) -> Section:
    return Section(title, text, len(text), of_text(text))


def _tool(tool: dict[str, Any]) -> Section:
    words = f"{tool['name']} {tool['description']} {dumps(tool['schema']).decode()}"
    return Section(tool["name"], f"{tool['description']}\n\n{indented(tool['schema'])}", len(words), of_text(words))
