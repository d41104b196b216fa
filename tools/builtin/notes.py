"""Notes of the goal (or task, or assistant) that the agent works on."""

from uuid import UUID

from pydantic import Field

from memory.marks import merged
from memory.models import Author, Note
from memory.notes import NoteRefused, create_note, delete_note, find_note, find_notes, locked_note, update_note
from memory.text import clip, without_marks
from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Topic, Wording
from tools.changes import Image, UndoRecord
from tools.rows import RowRestorer, thread_of

SHOWN = 10
NO_NOTE = "There is no note with this id in this conversation; search_notes and list_notes give the ids."


def image(note: Note) -> Image:
    """Without a mark, one that has none: images that were made before there were marks are the same."""
    marked: Image = {"sources": note.sources} if note.sources else {}
    return marked | {
        "thread": str(note.thread_id),
        "title": note.title,
        "body": note.body,
        "author": note.author,
        "created_at": note.created_at.isoformat(),
    }


class NoteRestorer(RowRestorer):
    kind = "note"
    model = Note
    stamps = ("updated_at",)
    fills = True
    image = staticmethod(image)


def record(note: Note, before: Image | None, after: Image | None) -> UndoRecord:
    return UndoRecord(changes=(NoteRestorer().change(str(note.pk), note.title, before, after),))


class NewNote(Arguments):
    title: str = Field(description="A short title, at most 200 characters.")
    body: str = Field(description="The note itself, in markdown.")


class CreateNote(Tool[NewNote]):
    name = "create_note"
    topic = Topic.NOTES
    description = "Create a note that the user keeps and can read and edit beside this conversation."
    wording = Wording("notebook-pen", "Create a note", "Creating a note", "Created a note", "Could not create a note")
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    contained = True
    Arguments = NewNote

    def subject(self, arguments: NewNote) -> str:
        return clip(arguments.title, 80)

    def run(self, arguments: NewNote, context: ToolContext) -> Outcome:
        try:
            note = create_note(thread_of(context), arguments.title, arguments.body, Author.AGENT, context.sources)
        except NoteRefused as refused:
            raise ToolError(str(refused)) from refused
        undo = record(note, None, image(note))
        return Outcome(f"Created the note {note.title!r} (id {note.pk}).", clip(note.title, 80), undo)


class NoteEdit(Arguments):
    id: UUID = Field(description="Of the note, as search_notes and list_notes give it.")
    title: str | None = Field(None, description="A new title; leave it out to keep it.")
    body: str | None = Field(None, description="The whole new text, in markdown; leave it out to keep it.")


class UpdateNote(Tool[NoteEdit]):
    name = "update_note"
    topic = Topic.NOTES
    description = "Change the title or the text of a note. The text is replaced as a whole, so read the note before."
    wording = Wording("notebook-pen", "Change a note", "Changing a note", "Changed a note", "Could not change the note")
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    Arguments = NoteEdit

    def expected(self, arguments: NoteEdit, context: ToolContext) -> UndoRecord | None:
        note = find_note(context.user_id, context.thread_id, arguments.id)
        if note is None:
            return None
        new = {"title": arguments.title, "body": arguments.body}
        return record(note, image(note), image(note) | {name: text for name, text in new.items() if text is not None})

    def is_contained(self, arguments: NoteEdit, context: ToolContext) -> bool:
        """What a person has written is not changed in a stranger's name."""
        note = find_note(context.user_id, context.thread_id, arguments.id)
        return note is None or note.author == Author.AGENT

    def run(self, arguments: NoteEdit, context: ToolContext) -> Outcome:
        note = _locked(context, arguments.id)
        before = image(note)
        try:
            update_note(note, title=arguments.title, body=arguments.body, editor=Author.AGENT, sources=context.sources)
        except NoteRefused as refused:
            raise ToolError(str(refused)) from refused
        after = image(note)
        undo = record(note, before, after) if after != before else None
        return Outcome(f"Changed the note {note.title!r}.", clip(note.title, 80), undo)


class OneNote(Arguments):
    id: UUID = Field(description="Of the note, as search_notes and list_notes give it.")


class ReadNote(Tool[OneNote]):
    name = "read_note"
    topic = Topic.NOTES
    description = "Read one note of this conversation as a whole."
    wording = Wording("notebook-pen", "Read a note", "Reading a note", "Read a note", "Could not read the note")
    reads = "note"
    Arguments = OneNote

    def run(self, arguments: OneNote, context: ToolContext) -> Outcome:
        note = find_note(context.user_id, context.thread_id, arguments.id)
        if note is None:
            raise ToolError(NO_NOTE)
        return Outcome(f"# {note.title}\n\n{note.body}", clip(note.title, 80), sources=note.sources)


class DeleteNote(Tool[OneNote]):
    name = "delete_note"
    topic = Topic.NOTES
    description = "Delete a note of this conversation."
    wording = Wording("trash-2", "Delete a note", "Deleting a note", "Deleted a note", "Could not delete the note")
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    Arguments = OneNote

    def expected(self, arguments: OneNote, context: ToolContext) -> UndoRecord | None:
        note = find_note(context.user_id, context.thread_id, arguments.id)
        return record(note, image(note), None) if note else None

    def is_contained(self, arguments: OneNote, context: ToolContext) -> bool:
        """What is not there, nobody can lose."""
        return find_note(context.user_id, context.thread_id, arguments.id) is None

    def run(self, arguments: OneNote, context: ToolContext) -> Outcome:
        note = _locked(context, arguments.id)
        undo = record(note, image(note), None)
        delete_note(note)
        return Outcome(f"Deleted the note {note.title!r}.", clip(note.title, 80), undo)


class NoteQuery(Arguments):
    query: str = Field(description="Words that must all occur in the note.")


class SearchNotes(Tool[NoteQuery]):
    name = "search_notes"
    topic = Topic.NOTES
    description = "Search the notes of this conversation; returns titles and the beginning of each."
    wording = Wording(
        "search", "Search your notes", "Searching your notes", "Searched your notes", "Could not search your notes"
    )
    reads = "note"
    Arguments = NoteQuery

    def subject(self, arguments: NoteQuery) -> str:
        return f"“{clip(arguments.query, 60)}”"

    def run(self, arguments: NoteQuery, context: ToolContext) -> Outcome:
        found = find_notes(context.user_id, context.thread_id, arguments.query, SHOWN)
        return Outcome(_listing(found), f"“{clip(arguments.query, 60)}”, {len(found)} found", sources=_sources(found))


class NothingAsked(Arguments):
    pass


class ListNotes(Tool[NothingAsked]):
    name = "list_notes"
    topic = Topic.NOTES
    description = "List the newest notes of this conversation with their titles and beginnings."
    wording = Wording(
        "notebook-pen",
        "Look through your notes",
        "Looking through your notes",
        "Looked through your notes",
        "Could not list notes",
    )
    reads = "note"
    Arguments = NothingAsked

    def run(self, arguments: NothingAsked, context: ToolContext) -> Outcome:
        found = find_notes(context.user_id, context.thread_id, "", SHOWN)
        return Outcome(_listing(found), f"{len(found)} found", sources=_sources(found))


def _locked(context: ToolContext, note_id: UUID) -> Note:
    note = locked_note(context.user_id, context.thread_id, note_id)
    if note is None:
        raise ToolError(NO_NOTE)
    return note


def _sources(notes: list[Note]) -> list[str]:
    return merged(*(note.sources for note in notes))


def _listing(notes: list[Note]) -> str:
    if not notes:
        return "No note was found."
    return "\n".join(
        f"- **{note.title}** (id {note.pk}): {clip(without_marks(note.body[:1200]), 300)}" for note in notes
    )
