"""The documents that an agent reads and writes (mission D3): those of its user, its memory and its daily notes."""

from collections.abc import Callable

from django.db import transaction
from django.utils import timezone
from pydantic import Field

from agents.budgets.counting import zone_of
from memory.document import BOOTSTRAP
from memory.documents import DocumentRefused, Place, place, readable, write_document
from memory.marks import merged
from memory.models import Author
from memory.sections import NoSection, sections, with_new_section, with_section
from memory.text import clip
from tools.base import (
    Arguments,
    Audience,
    Outcome,
    Risk,
    Tool,
    ToolContext,
    ToolError,
    Topic,
    Wording,
)
from tools.changes import UndoRecord
from tools.documents import image, record
from tools.rows import Writes

NAMES = (
    "AGENTS, SOUL, USER or IDENTITY (for all agents), MEMORY (yours), or a day such as 2026-11-29 (your daily note)."
)
LISTED = 60


class Reading(Arguments):
    name: str = Field("", max_length=20, description=f"{NAMES} Leave it out to list those that there are.")


class ReadDocument(Tool[Reading]):
    name = "read_document"
    topic = Topic.NOTES
    description = "Read a document as a whole, or list the documents with their sections."
    wording = Wording(
        "file-text", "Read a document", "Reading a document", "Read a document", "Could not read the document"
    )
    audience = frozenset({Audience.CONVERSATION})
    reads = "document"
    Arguments = Reading

    def subject(self, arguments: Reading) -> str:
        return clip(arguments.name, 20)

    def run(self, arguments: Reading, context: ToolContext) -> Outcome:
        if not arguments.name.strip():
            return _listing(context)
        found = _place(arguments.name, context).find()
        if found is None:
            raise ToolError("There is no such document yet; write_document makes it.")
        return Outcome(found.text or "(empty)", found.name, sources=found.sources)


class Writing(Arguments):
    name: str = Field(max_length=20, description=NAMES)
    text: str = Field(
        description="In markdown: the whole document, or what is to stand below the heading of the section."
    )
    section: str | None = Field(
        None,
        max_length=200,
        description="Write only the section of this heading, with all below it until the next heading of its level; a "
        "blank text removes it. Leave it out to write the whole document.",
    )
    new: bool = Field(False, description="The section is not there yet: add it at the end.")


class WriteDocument(Writes[Writing]):
    """What steers all agents of a user waits for that user, by what it risks; an agent's own is free."""

    name = "write_document"
    topic = Topic.NOTES
    description = (
        "Write a document, or one section of it. MEMORY is your long-term memory: what will matter in weeks and is too "
        "long for a learning. What is for all agents waits for the user's approval: propose it only when they would "
        "want every agent to know."
    )
    wording = Wording(
        "file-text", "Write a document", "Writing a document", "Wrote a document", "Could not write the document"
    )
    Arguments = Writing

    def subject(self, arguments: Writing) -> str:
        return clip(" · ".join(filter(None, [arguments.name, arguments.section])), 80)

    def risk_of(self, arguments: Writing) -> Risk:
        return Risk.RESTRICTED if _is_for_all(arguments) else Risk.ALLOWED

    def is_contained(self, arguments: Writing, context: ToolContext) -> bool:
        """What a person has written is not changed in a stranger's name, nor what others read."""
        if _is_for_all(arguments):
            return False
        try:
            found = _place(arguments.name, context).find()
        except ToolError:
            return True
        return found is None or found.author == Author.AGENT

    def expected(self, arguments: Writing, context: ToolContext) -> UndoRecord | None:
        try:
            found = _place(arguments.name, context).find()
            text = _written(found.text, arguments) if found else ""
        except ToolError:
            return None
        return record(found, image(found), image(found) | {"text": text}) if found else None

    def run(self, arguments: Writing, context: ToolContext) -> Outcome:
        return _write(_place(arguments.name, context), lambda text: _written(text, arguments), context)


class Line(Arguments):
    text: str = Field(min_length=1, description="What happened or came out, in markdown; the time is put before it.")


class AppendDailyNote(Writes[Line]):
    name = "append_daily_note"
    topic = Topic.NOTES
    description = "Write something at the end of today's note: what you did, found out or left for tomorrow."
    wording = Wording(
        "calendar", "Write today's note", "Writing today's note", "Wrote today's note", "Could not write today's note"
    )
    contained = True
    Arguments = Line

    def subject(self, arguments: Line) -> str:
        return clip(arguments.text, 80)

    def run(self, arguments: Line, context: ToolContext) -> Outcome:
        now = timezone.now().astimezone(zone_of(context.user_id))
        entry = f"{now:%H:%M} {arguments.text.strip()}"
        return _write(
            _place(now.date().isoformat(), context),
            lambda text: f"{text}\n\n{entry}" if text.strip() else entry,
            context,
        )


def _place(name: str, context: ToolContext) -> Place:
    try:
        return place(context.user_id, context.thread_id, name)
    except DocumentRefused as refused:
        raise ToolError(str(refused)) from refused


def _is_for_all(arguments: Writing) -> bool:
    return arguments.name.strip().upper() in BOOTSTRAP


def _written(text: str, arguments: Writing) -> str:
    """What a document will say that says `text`."""
    try:
        if arguments.section is None:
            return arguments.text
        change = with_new_section if arguments.new else with_section
        return change(text, arguments.section, arguments.text)
    except NoSection as missing:
        raise ToolError(str(missing)) from missing


def _write(at: Place, change: Callable[[str], str], context: ToolContext) -> Outcome:
    with transaction.atomic():
        found = at.find(lock=True)
        before = image(found) if found else None
        try:
            document = write_document(at, change(found.text if found else ""), Author.AGENT, context.sources)
        except DocumentRefused as refused:
            raise ToolError(str(refused)) from refused
    after = image(document)
    undo = record(document, before, after) if after != before else None
    return Outcome(f"Wrote {document.name}." if undo else "It says this already.", document.name, undo)


def _listing(context: ToolContext) -> Outcome:
    found = list(readable(context.user_id, context.thread_id)[:LISTED])
    lines = [
        f"- {each.name} ({len(each.text):,} characters)" + "".join(f"\n  {section}" for section in sections(each.text))
        for each in found
    ]
    listed = "\n".join(lines) or "There is no document yet."
    return Outcome(listed, f"{len(found)} found", sources=merged(*(each.sources for each in found)))
