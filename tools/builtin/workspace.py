"""Files in the agent's own workspace (mission D5)."""

import os
from collections.abc import Iterator
from typing import BinaryIO, Final

from pydantic import Field

from memory.files import media_type_of, text_of
from memory.text import clean, clip
from tools import files
from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Topic, Wording
from tools.changes import UndoRecord
from tools.file_changes import change
from tools.file_models import Writer
from tools.file_probing import landed, vanished
from tools.file_settling import is_agents_own, sources_of
from tools.sandbox.beneath import OutOfReach, parts_of
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Entry, Kind

LISTED: Final = 300
# Characters of one line, and of what is read at a time: more than that is shortened anyhow.
LINE: Final = 2_000
MOST_READ: Final = 18_000
_SNIFFED: Final = 8_192


class Place(Arguments):
    path: str = Field("", description="A folder, relative to the workspace; leave it out for the workspace itself.")


class ListDir(Tool[Place]):
    name = "list_dir"
    topic = Topic.FILES
    description = "List what is in a folder of your workspace: the files that you and commands have written."
    wording = Wording(
        "list",
        "Look into the workspace",
        "Looking into the workspace",
        "Looked into the workspace",
        "Could not look there",
    )
    Arguments = Place

    def subject(self, arguments: Place) -> str:
        return clip(arguments.path, 80)

    def run(self, arguments: Place, context: ToolContext) -> Outcome:
        try:
            found = Folder(context.thread_id).entries(parts_of(arguments.path))
        except OutOfReach as error:
            raise ToolError(str(error)) from error
        lines = [_line(entry) for entry in found[:LISTED]]
        if len(found) > LISTED:
            lines.append(f"… and {len(found) - LISTED:,} more")
        sources = sources_of(context.thread_id, found)
        return Outcome("\n".join(lines) or "It is empty.", clip(arguments.path, 80), sources=sources)


class Section(Arguments):
    path: str = Field(description="Of the file, relative to the workspace.")
    first_line: int = Field(1, ge=1, description="Where to begin.")
    lines: int = Field(400, ge=1, le=5_000, description="How many lines at most.")


class ReadFile(Tool[Section]):
    name = "read_file"
    topic = Topic.FILES
    description = (
        "Read a text file of your workspace, or some lines of it. Of a long one say where to begin; of one that is no "
        "text you are told what it is."
    )
    wording = Wording("file-text", "Read a file", "Reading a file", "Read a file", "Could not read the file")
    reads = "file"
    Arguments = Section

    def subject(self, arguments: Section) -> str:
        return clip(arguments.path, 80)

    def run(self, arguments: Section, context: ToolContext) -> Outcome:
        folder = Folder(context.thread_id)
        try:
            parts = files.named(arguments.path)
            entry = folder.entry(parts)
            with open(folder.open(parts), "rb") as file:
                observation = _read(file, entry, arguments)
        except (files.FileRefused, OutOfReach) as error:
            raise ToolError(str(error)) from error
        return Outcome(observation, clip(entry.path, 80), sources=sources_of(context.thread_id, [entry]))


class NewFile(Arguments):
    path: str = Field(description="Of the file, relative to the workspace; folders on the way are made.")
    content: str = Field(description="All that the file is to hold.")


def _at_stake(context: ToolContext, path: str) -> UndoRecord | None:
    """What lies under a name now; None when that cannot be told."""
    try:
        parts = files.named(path)
        content = Folder(context.thread_id).content(parts)
    except (files.FileRefused, OutOfReach):
        return None
    if content is None:
        return UndoRecord()
    return UndoRecord(changes=(change(context.thread_id, "/".join(parts), content, None),))


class WriteFile(Tool[NewFile]):
    """Verifiable: what is to be written is staged and put on record first, and the rename that is the effect takes the
    staged file away, so afterwards it is certain whether it happened (docs/reliability.md, "Files")."""

    name = "write_file"
    topic = Topic.FILES
    description = "Write a text file into your workspace. What it held before is replaced as a whole."
    wording = Wording("file", "Write a file", "Writing a file", "Wrote a file", "Could not write the file")
    effect = Effect.VERIFIABLE
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    Arguments = NewFile

    def subject(self, arguments: NewFile) -> str:
        return clip(arguments.path, 80)

    def run(self, arguments: NewFile, context: ToolContext) -> Outcome:
        hand = files.Hand(Writer.AGENT, context.sources, context.action_id, lambda record: context.cancel.check())
        content = clean(arguments.content).encode()
        try:
            return _written(arguments, files.write(context.thread_id, arguments.path, iter([content]), hand))
        except files.FileRefused as refused:
            raise ToolError(str(refused)) from refused

    def expected(self, arguments: NewFile, context: ToolContext) -> UndoRecord | None:
        return _at_stake(context, arguments.path)

    def is_contained(self, arguments: NewFile, context: ToolContext) -> bool:
        return is_agents_own(context.thread_id, arguments.path)

    def probe(self, arguments: NewFile, context: ToolContext) -> Outcome | None:
        try:
            record = landed(context.thread_id, context.action_id)
        except files.FileRefused as refused:
            raise ToolError(str(refused)) from refused
        return None if record is None else _written(arguments, record)


class OneFile(Arguments):
    path: str = Field(description="Of the file, relative to the workspace.")


class DeleteFile(Tool[OneFile]):
    """Verifiable: whether it happened is seen by whether the file is there, and what it held is on record before."""

    name = "delete_file"
    topic = Topic.FILES
    description = "Delete a file of your workspace. Of a link, the link."
    wording = Wording("trash-2", "Delete a file", "Deleting a file", "Deleted a file", "Could not delete the file")
    effect = Effect.VERIFIABLE
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    Arguments = OneFile

    def subject(self, arguments: OneFile) -> str:
        return clip(arguments.path, 80)

    def run(self, arguments: OneFile, context: ToolContext) -> Outcome:
        hand = files.Hand(Writer.AGENT, context.sources, context.action_id, lambda record: context.cancel.check())
        try:
            return _deleted(arguments, files.remove(context.thread_id, arguments.path, hand))
        except files.FileRefused as refused:
            raise ToolError(str(refused)) from refused

    def expected(self, arguments: OneFile, context: ToolContext) -> UndoRecord | None:
        return _at_stake(context, arguments.path)

    def is_contained(self, arguments: OneFile, context: ToolContext) -> bool:
        return is_agents_own(context.thread_id, arguments.path)

    def probe(self, arguments: OneFile, context: ToolContext) -> Outcome | None:
        try:
            record = vanished(context.thread_id, arguments.path, context.action_id)
        except (files.FileRefused, OutOfReach) as refused:
            raise ToolError(str(refused)) from refused
        return None if record is None else _deleted(arguments, record)


def _deleted(arguments: OneFile, record: UndoRecord) -> Outcome:
    path = "/".join(parts_of(arguments.path))
    return Outcome(f"Deleted {path}.", clip(path, 80), record if record.changes else None)


def _written(arguments: NewFile, record: UndoRecord) -> Outcome:
    path = "/".join(parts_of(arguments.path))
    size = files.in_words(len(clean(arguments.content).encode()))
    (changed,) = record.changes or (None,)
    how = "It was so already." if changed is None else "It is new." if changed.before is None else "It was replaced."
    return Outcome(f"Wrote {path} ({size}). {how}", clip(path, 80), record if record.changes else None)


def _line(entry: Entry) -> str:
    match entry.kind:
        case Kind.FILE:
            return f"{entry.name} ({files.in_words(entry.size)})"
        case Kind.FOLDER:
            return f"{entry.name}/"
        case Kind.LINK:
            return f"{entry.name} (a link, which is not followed)"
        case _:
            return f"{entry.name!r} (cannot be read)"


def _read(file: BinaryIO, entry: Entry, section: Section) -> str:
    beginning = file.read(_SNIFFED)
    if not _is_text(beginning):
        return f"{entry.path} is no text: {media_type_of(beginning)}, {files.in_words(entry.size)}."
    file.seek(0, os.SEEK_SET)
    shown, total, following = _section(file, section)
    if total == 0:
        return f"{entry.path} is empty."
    head = f"{entry.path}, {total:,} line{'' if total == 1 else 's'}, {files.in_words(entry.size)}"
    last = section.first_line + len(shown) - 1
    if not shown:
        return f"{head}. There is no line {section.first_line:,}."
    more = f"\n… goes on; read from line {following:,}." if following else ""
    return f"{head}. Lines {section.first_line:,} to {last:,}:\n{''.join(shown)}{more}"


def _is_text(beginning: bytes) -> bool:
    """Where the file goes on, its beginning may end within a character, which has four bytes at most."""
    cuts = 4 if len(beginning) == _SNIFFED else 1
    return any(text_of(beginning[: len(beginning) - cut]) is not None for cut in range(cuts))


def _section(file: BinaryIO, section: Section) -> tuple[list[str], int, int]:
    """Returns the lines that were asked for, as many as a model reads at a time, how many there are in all, and which
    comes next; 0 when there are no more."""
    shown: list[str] = []
    length = total = following = 0
    for number, line in enumerate(_lines(file), 1):
        total = number
        if number < section.first_line:
            continue
        if following == 0 and (len(shown) >= section.lines or length + len(line) > MOST_READ):
            following = number
        if following == 0:
            shown.append(line)
            length += len(line)
    return shown, total, following


def _lines(file: BinaryIO) -> Iterator[str]:
    """Lines, of which none is longer than it may be; its rest is skipped."""
    while line := file.readline(LINE * 4):
        is_cut = not line.endswith(b"\n") and len(line) == LINE * 4
        while is_cut and (rest := file.readline(LINE * 4)) and not rest.endswith(b"\n"):
            pass
        text = line.decode("utf-8", errors="replace")
        yield f"{text[:LINE].rstrip()} … (this line is longer)\n" if is_cut or len(text) > LINE + 1 else text
