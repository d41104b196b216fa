"""What people do to the files of their agents: on record as actions of theirs, which can be taken back, and told to the
agent."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from memory.models import Thread
from tools import files
from tools.base import Effect
from tools.changes import UndoRecord
from tools.deeds import by_person
from tools.file_models import Writer
from tools.models import AgentAction
from tools.sandbox.beneath import Missing, OutOfReach
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Entry

BY_USER = files.Hand(Writer.USER)


@dataclass(frozen=True, slots=True)
class Files:
    """All files of a workspace by path, and how much of it they take. used, most: bytes."""

    entries: list[Entry]
    used: int
    most: int


def all_files(thread: Thread) -> Files:
    """What there is, as it lies on the disk."""
    scan = Folder(thread.pk).scan(settings.WAYMARK_WORKSPACE_FILES + 1)
    return Files([entry for _, entry in sorted(scan.files.items())], scan.bytes, settings.WAYMARK_WORKSPACE_BYTES)


def entry_of(thread: Thread, path: str) -> Entry | None:
    """What is known of a file; None when there is none that may be read."""
    with suppress(files.FileRefused, OutOfReach):
        return Folder(thread.pk).entry(files.named(path))
    return None


def opened(thread: Thread, path: str) -> int | None:
    """A descriptor of a file, which the caller closes; None as for `entry_of`."""
    with suppress(files.FileRefused, OutOfReach):
        return Folder(thread.pk).open(files.named(path))
    return None


def add_file(thread: Thread, path: str, size: int, chunks: Iterator[bytes]) -> AgentAction:
    """Put a file of the user's into the workspace; what had its name before is replaced, and kept.

    Raises:
        FileRefused: it is too large, its name leads nowhere, or the workspace is full.
    """
    if size > settings.WAYMARK_WORKSPACE_UPLOAD:
        most = files.in_words(settings.WAYMARK_WORKSPACE_UPLOAD)
        raise files.FileRefused(f"The file has {files.in_words(size)}; one may have at most {most}.")
    with transaction.atomic():
        record = files.write(thread.pk, path, chunks, BY_USER)
        return _recorded(thread, "write_file", path, record, "has put a file into the workspace")


def delete_file(thread: Thread, path: str) -> AgentAction | None:
    """Delete a file of the workspace. None: there is none, or it is a folder.

    Raises:
        FileRefused: it cannot be removed.
    """
    try:
        with transaction.atomic():
            record = files.remove(thread.pk, path, BY_USER)
            return _recorded(thread, "delete_file", path, record, "has deleted a file of the workspace")
    except files.FileRefused as refused:
        if isinstance(refused.__cause__, Missing):
            return None
        raise


def _recorded(thread: Thread, tool: str, path: str, record: UndoRecord, news: str) -> AgentAction:
    name = "/".join(files.named(path))
    return by_person(thread, tool, {"path": name}, name, record, news, Effect.VERIFIABLE)
