"""The files of an agent: every write that a tool, a face or an undo may ask for (mission D5).

Who changes something holds the lock of the workspace's row meanwhile; only a command at work does not, and what it did
is looked up afterwards (`settle`). What a file held before is kept, outside the reach of commands, until there is too
much of it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat
from psycopg.errors import LockNotAvailable
from psycopg.types.json import Jsonb

from memory import pool
from memory.ids import new_id
from tools.changes import UndoRecord
from tools.file_changes import change, recorded
from tools.file_models import FileWrite, Workspace, WorkspaceFile, Writer
from tools.models import ActionStatus, AgentAction
from tools.sandbox.beneath import OutOfReach, parts_of
from tools.sandbox.disk import NEARLY_FULL, is_nearly_full
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Entry, Scan
from tools.sandbox.staging import Content

BUSY: Final = "The workspace is busy; try again in a moment."
GONE: Final = "The conversation that these files belonged to is gone."

# On a connection of its own, so that it is on record whatever becomes of the transaction around it.
_INTEND: Final = """
INSERT INTO tools_filewrite (action, workspace_id, record) VALUES (%(action)s, %(workspace)s, %(record)s)
ON CONFLICT (action) DO UPDATE SET record = excluded.record
"""
_WITHDRAW: Final = "DELETE FROM tools_filewrite WHERE action = %(action)s"


class FileRefused(Exception):
    """It cannot be written as asked; the message is for people and models alike."""


@dataclass(frozen=True, slots=True)
class Hand:
    """Who writes.

    sources: where text of strangers came from that they may have read. call: the id of the call that writes, by which
        it is known afterwards whether it has. may_write: called with what is about to change,
        right before it does, in the same transaction; raises when it may not.
    """

    writer: Writer
    sources: Sequence[str] = ()
    call: UUID | None = None
    may_write: Callable[[UndoRecord], None] = lambda record: None


def write(thread_id: UUID, path: str, chunks: Iterator[bytes], hand: Hand) -> UndoRecord:
    """Let a file hold something, in one step; folders on the way are made. Returns what was changed. What an agent
    finds as it wants it stays whose it was.

    Raises:
        FileRefused: the path leads nowhere, something else is there, or there is no room. Nothing was written.
    """
    if is_nearly_full():
        raise FileRefused(NEARLY_FULL)
    parts, folder = named(path), ready(thread_id)
    staged = folder.staged / str(hand.call or new_id())
    try:
        content = _staged(folder, staged, chunks)
        folder.content(parts, keep=True)  # so that it need not be copied while others wait for the lock
        with transaction.atomic():
            workspace = locked(thread_id)
            before = folder.content(parts, keep=True)
            _check_room(folder.scan(settings.WAYMARK_WORKSPACE_FILES + 1), before, content)
            content = replace(content, mode=before.mode if before else content.mode)
            record = recorded([change(thread_id, "/".join(parts), before, content)])
            _intend(hand, thread_id, record)
            hand.may_write(record)
            if record.changes or hand.writer is not Writer.AGENT:
                put(workspace, folder, staged, "/".join(parts), content, hand)
            else:
                staged.unlink()
    except Exception as error:
        if _withdrawn(hand, staged) and (why := _why_not(error)):
            raise FileRefused(why) from error
        raise
    folder.kept.let_go()
    return record


def remove(thread_id: UUID, path: str, hand: Hand) -> UndoRecord:
    """Remove a file, or a link; what a file held is kept for an undo.

    Raises:
        FileRefused: there is none, or it cannot be removed.
    """
    parts, folder = named(path), Folder(thread_id)
    _have_row(thread_id)
    try:
        with transaction.atomic():
            workspace = locked(thread_id)
            before = None if folder.is_link(parts) else folder.content(parts, keep=True)
            record = recorded([change(thread_id, "/".join(parts), before, None)])
            _intend(hand, thread_id, record)
            hand.may_write(record)
            take_away(workspace, folder, "/".join(parts))
    except (OutOfReach, OSError) as error:
        raise FileRefused(reason(error)) from error
    folder.kept.let_go()
    return record


def put(workspace: Workspace, folder: Folder, staged: Path, path: str, content: Content, hand: Hand) -> None:
    """Let a file be what was staged, under the lock of the workspace; whose it is is written down.

    Raises:
        OutOfReach: something else has that name.
    """
    made = folder.put(staged, path.split("/"), content.mode)
    remember(workspace, hand.sources, made)
    write_down(workspace, folder.entry(path.split("/")), content, hand)


def take_away(workspace: Workspace, folder: Folder, path: str) -> None:
    """Remove a file under the lock of the workspace, and the folders that were made for it and are empty now.

    Raises:
        OutOfReach: there is none.
    """
    folder.remove(path.split("/"))
    workspace.files.filter(path=path).delete()
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) in workspace.folders and folder.remove_if_empty(parts):
        workspace.folders.remove("/".join(parts))
        parts = parts[:-1]
    workspace.save(update_fields=["folders"])


def ready(thread_id: UUID) -> Folder:
    """The folder of an agent, to be written into. Nothing else makes one: it is made under the lock, which a deletion
    of the agent takes as well. So that removes it, or has come before; and what outlives its agent makes none anew.

    Raises:
        FileRefused: the agent is gone, somebody else holds its workspace, or it cannot be made.
    """
    _have_row(thread_id)
    folder = Folder(thread_id)
    if not folder.files.is_dir():
        with transaction.atomic():
            locked(thread_id)
            try:
                folder.make()
            except OSError as error:
                raise FileRefused(reason(error)) from error
    return folder


def locked(thread_id: UUID) -> Workspace:
    """The workspace of an agent, which nobody else changes until the transaction ends.

    Raises:
        FileRefused: somebody else holds it for longer than one waits, or the agent is gone.
    """
    _have_row(thread_id)
    try:
        return Workspace.objects.select_for_update(no_key=True).get(pk=thread_id)
    except Workspace.DoesNotExist:
        raise FileRefused(GONE) from None
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise FileRefused(BUSY) from error
        raise


def _have_row(thread_id: UUID) -> None:
    """Whether there is an agent is asked at once, and not when the transaction ends: files do not go with it.

    Raises:
        FileRefused: the agent is gone.
    """
    try:
        with transaction.atomic():
            _, made = Workspace.objects.get_or_create(thread_id=thread_id)
            if made:
                connection.check_constraints()
    except IntegrityError:
        raise FileRefused(GONE) from None


def named(path: str) -> list[str]:
    """The parts of a path to a file.

    Raises:
        FileRefused: it leads out of the workspace, or is none.
    """
    try:
        parts = parts_of(path)
    except OutOfReach as error:
        raise FileRefused(str(error)) from error
    if not parts:
        raise FileRefused("A file needs a name.")
    return list(parts)


def _staged(folder: Folder, staged: Path, chunks: Iterator[bytes]) -> Content:
    try:
        return folder.stage(staged, chunks)
    except FileNotFoundError:
        raise FileRefused(GONE) from None
    except OSError as error:
        raise FileRefused(reason(error)) from error


def _check_room(scan: Scan, before: Content | None, content: Content) -> None:
    most, files = settings.WAYMARK_WORKSPACE_BYTES, settings.WAYMARK_WORKSPACE_FILES
    if scan.bytes - (before.size if before else 0) + content.size > most:
        raise FileRefused(f"The workspace is full: with this it would hold more than {in_words(most)}.")
    if scan.count + (before is None) > files:
        raise FileRefused(f"The workspace is full: it may hold {files:,} files and folders.")
    if not scan.whole:
        raise FileRefused(
            "There is a folder whose name or contents cannot be read, so nobody knows how much room is left. A command "
            "of the agent has made it, and can remove it."
        )


def in_words(size: int) -> str:
    return filesizeformat(size).replace("\N{NO-BREAK SPACE}", " ")


def _intend(hand: Hand, thread_id: UUID, record: UndoRecord) -> None:
    """Also forget what earlier calls intended, once their outcome is on record."""
    if hand.call is None:
        return
    over = AgentAction.objects.filter(pk=OuterRef("action"), status=ActionStatus.DONE)
    FileWrite.objects.filter(Exists(over), workspace=thread_id).delete()
    values = {"action": hand.call, "workspace": thread_id, "record": Jsonb(record.model_dump(mode="json"))}
    pool.execute(_INTEND, values)


def _withdrawn(hand: Hand, staged: Path) -> bool:
    """Whether it was not written, and will not be. Without the staged file it would look as if it was, so that goes
    last."""
    if not staged.exists():
        return False
    if hand.call is not None:
        pool.execute(_WITHDRAW, {"action": hand.call})
    staged.unlink()
    return True


def reason(error: FileRefused | OutOfReach | OSError) -> str:
    """Why something cannot be done to a file, as a sentence."""
    return f"{error.strerror}." if isinstance(error, OSError) else str(error)


def _why_not(error: Exception) -> str:
    """Why nothing was written, when that is to be told; empty when it is a fault."""
    return reason(error) if isinstance(error, OutOfReach | OSError) else pool.shortage(error)


def remember(workspace: Workspace, sources: Sequence[str], made: Sequence[str]) -> None:
    """What came into the workspace, and the folders that were made for it."""
    known = set(sources) <= set(workspace.sources) and set(made) <= set(workspace.folders)
    if not known:
        workspace.sources = together(workspace.sources, sources)
        workspace.folders = together(workspace.folders, made)
        workspace.save(update_fields=["sources", "folders"])


def write_down(workspace: Workspace, entry: Entry, content: Content, hand: Hand) -> None:
    """Whose doing it is that a file is as it is."""
    values = {
        "stamp": entry.stamp,
        "sha256": content.sha256,
        "size": content.size,
        "mode": content.mode,
        "writer": hand.writer,
        "sources": list(hand.sources),
        "updated_at": Now(),
    }
    WorkspaceFile.objects.update_or_create(workspace=workspace, path=entry.path, defaults=values)


def together(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Both, each once."""
    return list(dict.fromkeys([*first, *second]))
