"""Notes: every write that a face or a tool may ask for."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from memory import pool
from memory.hot import columns, instance
from memory.marks import merged, names
from memory.models import Author, Note, NoteQuerySet, NoteVersion, Thread
from memory.room import make_sure_of_room, size
from memory.text import clean
from memory.versions import drop_oldest, goes_on

WORDS: Final = 20


class NoteRefused(Exception):
    """The note cannot be saved as asked; the message is for people and models alike."""


def create_note(
    thread: Thread, title: str, body: str = "", author: Author = Author.USER, sources: Sequence[str] = ()
) -> Note:
    """
    Args:
        sources: whose texts its writer has read (`memory.marks`).

    Raises:
        NoteRefused: blank title, title or body too long, or no room for it.
    """
    title, body = _checked(title, body)
    with transaction.atomic():
        make_sure_of_room(thread.user_id, size(body), NoteRefused, wait=author == Author.USER)
        return Note.objects.create(
            user_id=thread.user_id, thread=thread, title=title, body=body, author=author, sources=names(sources)
        )


def update_note(
    note: Note,
    *,
    title: str | None = None,
    body: str | None = None,
    editor: Author = Author.USER,
    sources: Sequence[str] = (),
) -> Note:
    """What it said is kept, but for what its user typed in one go. One that says this already stays as it is.

    Args:
        sources: as in `create_note`; they join those that it has.

    Raises:
        NoteRefused: as `create_note`.
    """
    title, body = _checked(note.title if title is None else title, note.body if body is None else body)
    if (title, body) == (note.title, note.body):
        return note
    is_same_change = goes_on(note.edited_by or note.author, note.updated_at, editor)
    more = size(body) - (size(note.body) if is_same_change else 0)
    with transaction.atomic():
        make_sure_of_room(note.user_id, more, NoteRefused, wait=editor == Author.USER)
        if not is_same_change:
            keep_version(note)
        note.title, note.body, note.edited_by = title, body, editor
        note.sources = merged(note.sources, sources)
        note.updated_at = Now()
        note.save(update_fields=["title", "body", "edited_by", "sources", "updated_at"])
    return note


def keep_version(note: Note) -> None:
    """Keep how a note stands, before it is changed; of many the oldest go."""
    NoteVersion.objects.create(
        note=note,
        title=note.title,
        body=note.body,
        author=note.edited_by or note.author,
        sources=note.sources,
        written_at=note.updated_at,
    )
    drop_oldest(NoteVersion.objects.filter(note=note))


def restore(version: NoteVersion) -> Note:
    """Let a note say again what it said once. How it stands now is kept."""
    note = version.note
    update_note(note, title=version.title, body=version.body, sources=version.sources)
    return note


def delete_note(note: Note) -> None:
    note.delete()


def locked_note(user_id: int, thread_id: UUID, note_id: UUID) -> Note | None:
    """One note of a thread, kept from others until the transaction ends."""
    return Note.objects.select_for_update().filter(pk=note_id, user_id=user_id, thread_id=thread_id).first()


def search_notes(user: User, query: str, thread: Thread | None = None) -> NoteQuerySet:
    """Notes that hold every word of `query` in title or body, newest first; all notes when the query is blank."""
    found = Note.objects.for_user(user).select_related("thread")
    if thread is not None:
        found = found.filter(thread=thread)
    for word in _words(query):
        found = found.filter(Q(title__icontains=word) | Q(body__icontains=word))
    return found


FIND = f"""
SELECT {columns(Note, "n")} FROM memory_note n
WHERE n.user_id = %(user)s AND n.thread_id = %(thread)s AND NOT EXISTS (
  SELECT FROM unnest(%(words)s::text[]) AS word
  WHERE strpos(lower(n.title), lower(word)) = 0 AND strpos(lower(n.body), lower(word)) = 0)
ORDER BY n.updated_at DESC LIMIT %(most)s
"""  # noqa: S608 (columns of a model)


FIND_ONE = f"""
SELECT {columns(Note, "n")} FROM memory_note n
WHERE n.id = %(note)s AND n.user_id = %(user)s AND n.thread_id = %(thread)s"""  # noqa: S608 (columns of a model)


def find_note(user_id: int, thread_id: UUID, note_id: UUID) -> Note | None:
    """One note of a thread, for runs."""
    rows = pool.execute(FIND_ONE, {"user": user_id, "thread": thread_id, "note": note_id})
    return instance(Note, rows[0]) if rows else None


def find_notes(user_id: int, thread_id: UUID, query: str, most: int) -> list[Note]:
    """What `search_notes` finds in one thread, for runs: a tenth of their time went into the ORM's way."""
    parameters = {"user": user_id, "thread": thread_id, "words": _words(query), "most": most}
    return [instance(Note, row) for row in pool.execute(FIND, parameters)]


def _words(query: str) -> list[str]:
    return clean(query).split()[:WORDS]


def _checked(title: str, body: str) -> tuple[str, str]:
    title, body = " ".join(clean(title).split()), clean(body)
    if not title:
        raise NoteRefused("A note needs a title.")
    if len(title) > Note.TITLE_LENGTH:
        raise NoteRefused(f"The title has {len(title)} characters; at most {Note.TITLE_LENGTH} are allowed.")
    if len(body) > Note.BODY_LENGTH:
        raise NoteRefused(f"The note has {len(body):,} characters; at most {Note.BODY_LENGTH:,} are allowed.")
    return title, body
