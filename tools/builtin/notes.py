"""Notes of the goal (or task, or assistant) that the agent works on."""

from pydantic import Field

from memory.models import Author, Note, Thread
from memory.notes import NoteRefused, create_note, find_notes
from memory.text import clip, without_marks
from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Wording

SHOWN = 10


class NewNote(Arguments):
    title: str = Field(description="A short title, at most 200 characters.")
    body: str = Field(description="The note itself, in markdown.")


class CreateNote(Tool[NewNote]):
    name = "create_note"
    description = "Create a note that the user keeps and can read and edit beside this conversation."
    wording = Wording("notebook-pen", "Creating a note", "Created a note", "Could not create a note")
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    Arguments = NewNote

    def subject(self, arguments: NewNote) -> str:
        return clip(arguments.title, 80)

    def run(self, arguments: NewNote, context: ToolContext) -> Outcome:
        try:
            note = create_note(_thread(context), arguments.title, arguments.body, Author.AGENT)
        except NoteRefused as refused:
            raise ToolError(str(refused)) from refused
        return Outcome(
            f"Created the note {note.title!r} (id {note.pk}).", clip(note.title, 80), undo={"note": str(note.pk)}
        )


class NoteQuery(Arguments):
    query: str = Field(description="Words that must all occur in the note.")


class SearchNotes(Tool[NoteQuery]):
    name = "search_notes"
    description = "Search the notes of this conversation; returns titles and the beginning of each."
    wording = Wording("search", "Searching your notes", "Searched your notes", "Could not search your notes")
    Arguments = NoteQuery

    def subject(self, arguments: NoteQuery) -> str:
        return f"“{clip(arguments.query, 60)}”"

    def run(self, arguments: NoteQuery, context: ToolContext) -> Outcome:
        found = find_notes(context.user_id, context.thread_id, arguments.query, SHOWN)
        return Outcome(_listing(found), f"“{clip(arguments.query, 60)}”, {len(found)} found")


class NothingAsked(Arguments):
    pass


class ListNotes(Tool[NothingAsked]):
    name = "list_notes"
    description = "List the newest notes of this conversation with their titles and beginnings."
    wording = Wording("notebook-pen", "Looking through your notes", "Looked through your notes", "Could not list notes")
    Arguments = NothingAsked

    def run(self, arguments: NothingAsked, context: ToolContext) -> Outcome:
        found = find_notes(context.user_id, context.thread_id, "", SHOWN)
        return Outcome(_listing(found), f"{len(found)} found")


def _thread(context: ToolContext) -> Thread:
    """Only its identity and its owner, which the engine knows: not worth a query."""
    return Thread(pk=context.thread_id, user_id=context.user_id)


def _listing(notes: list[Note]) -> str:
    if not notes:
        return "No note was found."
    return "\n".join(f"- **{note.title}**: {clip(without_marks(note.body[:1200]), 300)}" for note in notes)
