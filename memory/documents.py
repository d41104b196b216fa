"""Documents: every write that a face or a tool may ask for, and what agents are told of them (missions E1 and D3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from memory.document import BOOTSTRAP, MEMORY
from memory.marks import merged, names
from memory.models import Author, Document, DocumentVersion
from memory.room import make_sure_of_room, size
from memory.text import clean
from memory.versions import drop_oldest, goes_on


class DocumentRefused(Exception):
    """The document cannot be saved as asked; the message is for people and models alike."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document stands, whether there is one or not.

    thread: of the agent; None: it is the user's.
    """

    user: int
    thread: UUID | None
    name: str

    def find(self, *, lock: bool = False) -> Document | None:
        mine = Document.objects.filter(user=self.user, thread=self.thread, name=self.name)
        return (mine.select_for_update() if lock else mine).first()


def place(user_id: int, thread_id: UUID, name: str) -> Place:
    """Where a document of that name stands for an agent: those for all agents are its user's.

    Raises:
        DocumentRefused: no document has such a name.
    """
    name = name.strip().upper()
    if name in BOOTSTRAP:
        return Place(user_id, None, name)
    if name != MEMORY:
        try:
            name = date.fromisoformat(name).isoformat()
        except ValueError as error:
            known = ", ".join((*BOOTSTRAP, MEMORY))
            raise DocumentRefused(f"A document is one of {known}, or a day such as 2026-11-29.") from error
    return Place(user_id, thread_id, name)


def readable(user_id: int, thread_id: UUID) -> QuerySet[Document]:
    """What an agent may read: its user's documents and its own, daily notes last and the newest of them first."""
    mine = Document.objects.filter(user=user_id)
    return (mine.filter(thread=None) | mine.filter(thread=thread_id)).order_by("-name")


def write_document(at: Place, text: str, editor: Author = Author.USER, sources: Sequence[str] = ()) -> Document:
    """Let a document say something; there need not have been one. What it said is kept, but for what its user typed in
    one go.

    Args:
        sources: whose texts its writer has read (`memory.marks`); they join those that it has.

    Raises:
        DocumentRefused: too long, or no room for it.
    """
    text = checked(text)
    with transaction.atomic():
        make_sure_of_room(at.user, _more(at, text, editor), DocumentRefused, wait=editor == Author.USER)
        whose: dict[str, Any] = {"user_id": at.user, "thread_id": at.thread, "name": at.name}
        document, is_new = Document.objects.select_for_update().get_or_create(
            **whose,
            defaults={"text": text, "author": editor, "edited_by": editor, "sources": names(sources)},
        )
        if is_new or document.text == text:
            return document
        if not goes_on(document.edited_by, document.updated_at, editor):
            keep_document_version(document)
        document.text, document.edited_by, document.updated_at = text, editor, Now()
        document.author = Author.USER if editor == Author.USER else document.author
        document.sources = merged(document.sources, sources)
        document.save(update_fields=["text", "author", "edited_by", "sources", "updated_at"])
    return document


def _more(at: Place, text: str, editor: Author) -> int:
    """How many bytes it takes to have a document say something."""
    found = at.find()
    if found is None:
        return size(text)
    if found.text == text:
        return 0
    return size(text) - (size(found.text) if goes_on(found.edited_by, found.updated_at, editor) else 0)


def keep_document_version(document: Document) -> None:
    """Keep how a document stands, before it is changed."""
    DocumentVersion.objects.create(
        document=document,
        text=document.text,
        author=document.edited_by,
        sources=document.sources,
        written_at=document.updated_at,
    )
    drop_oldest(DocumentVersion.objects.filter(document=document))


def restore_document(version: DocumentVersion) -> Document:
    """Let a document say again what it said once. How it stands now is kept."""
    return write_document(place_of(version.document), version.text, sources=version.sources)


def delete_document(document: Document) -> None:
    """With all that it ever said."""
    document.delete()


def vouch(document: Document) -> None:
    """Take the mark off: its user has read it, and stands by every word."""
    Document.objects.filter(pk=document.pk).update(sources=[])


def place_of(document: Document) -> Place:
    return Place(document.user_id, document.thread_id, document.name)


def checked(text: str) -> str:
    """
    Raises:
        DocumentRefused: too long.
    """
    text, longest = clean(text), settings.WAYMARK_DOCUMENT_LENGTH
    if len(text) > longest:
        raise DocumentRefused(f"The document has {len(text):,} characters; at most {longest:,} are allowed.")
    return text


# For a thread that is called t: name, text, length and sources of the documents that its agent is told of. Of a daily
# note the end matters, of all others the beginning.
TOLD: Final = """
(SELECT coalesce(jsonb_agg(jsonb_build_array(d.name, CASE WHEN d.name < 'A' THEN right(d.text, %(document_told)s::int)
    ELSE left(d.text, %(document_told)s::int) END, length(d.text), d.sources) ORDER BY d.name), '[]') FROM (
  SELECT name, text, sources FROM memory_document
  WHERE user_id = t.user_id AND thread_id IS NULL AND text <> ''
  UNION ALL SELECT * FROM (
    SELECT name, text, sources FROM memory_document
    WHERE thread_id = t.id AND text <> '' AND (name >= 'A' OR name <= %(tomorrow)s)
    ORDER BY name DESC LIMIT 2 + %(daily_notes)s::int) own) d)
"""


def told_parameters() -> dict[str, int | str]:
    """The parameters of `TOLD`. Notes of days that lie ahead, wherever it is today already, take nobody's place."""
    return {
        "document_told": settings.WAYMARK_DOCUMENT_TOLD,
        "daily_notes": settings.WAYMARK_DAILY_NOTE_DAYS,
        "tomorrow": (timezone.now() + timedelta(days=1)).date().isoformat(),
    }


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent is told of documents.

    prefix: those of its user, a section of the system prompt, the same bytes until one is changed; may be empty.
    remembered: its own, by the section of the context. sources: whose texts their writers had read.
    """

    prefix: str
    remembered: dict[str, str]
    sources: Sequence[str]


type Row = tuple[str, str, int, Sequence[str]]


def told(rows: Sequence[Row], now: datetime, time_zone: str) -> Told:
    """
    Args:
        rows: as `TOLD` gives them.
        time_zone: of the user, whose days they are.
    """
    known = {row[0]: row for row in rows}
    today = now.astimezone(ZoneInfo(time_zone)).date()
    since = (today - timedelta(days=settings.WAYMARK_DAILY_NOTE_DAYS - 1)).isoformat()
    days = [row for name, row in known.items() if name[0].isdigit() and since <= name <= today.isoformat()]
    shared = [known[name] for name in BOOTSTRAP if name in known]
    memory = [known[MEMORY]] if MEMORY in known else []
    prefix = "\n".join(f"<document name={quoteattr(row[0])}>\n{_told(row)}\n</document>" for row in shared)
    return Told(
        f"\n<documents>\n{prefix}\n</documents>\n" if shared else "",
        {
            "memory": "".join(map(_told, memory)),
            "daily_notes": "\n\n".join(f"# {row[0]}\n\n{_told(row)}" for row in days),
        },
        merged(*(row[3] for row in (*shared, *memory, *days))),
    )


def _told(row: Row) -> str:
    _name, text, length, sources = row
    cut = f"\n[{length - len(text):,} characters are left out; read_document has them]" if length > len(text) else ""
    return escape(text.strip("\n") + cut + (f"\n[after reading {', '.join(sources)}]" if sources else ""))
