"""What people do to the files of their agents: on record as actions of theirs, which can be taken back, and told to the
agent."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Count, Max

from memory.models import Thread
from tools import files
from tools.base import Effect
from tools.changes import UndoRecord
from tools.deeds import by_person
from tools.file_models import WorkspaceFile, Writer
from tools.models import AgentAction
from tools.sandbox.beneath import Missing, OutOfReach
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Entry

PAGE: Final = 100
FRESH: Final = 10
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a workspace by path, a page of them. used, most: bytes that all of them take, and may take.
    after: the path of the last one here, when `left` more follow; else empty."""

    entries: list[Entry]
    used: int
    most: int
    left: int

    @property
    def after(self) -> str:
        return self.entries[-1].path if self.left else ""


def files_of(thread: Thread, after: str = "", limit: int = PAGE) -> Files:
    """What there is, as it lies on the disk: as many files as `limit` says, whose paths come after one."""
    scan = Folder(thread.pk).scan(settings.WAYMARK_WORKSPACE_FILES + 1)
    found = sorted(path for path in scan.files if path > after)
    entries = [scan.files[path] for path in found[:limit]]
    return Files(entries, scan.bytes, settings.WAYMARK_WORKSPACE_BYTES, len(found) - len(entries))


def newest_of(thread: Thread, limit: int) -> tuple[list[Entry], int]:
    """What was changed last, as it lies on the disk, and how many files there are. Everything there is looked at for
    that, so it is kept for a while: what is on record is seen at once, and within FRESH what a command does, also one
    of which nobody could say what it did."""
    recorded = WorkspaceFile.objects.filter(workspace=thread.pk).aggregate(files=Count("pk"), last=Max("updated_at"))
    last = recorded["last"].timestamp() if recorded["last"] else 0
    key = f"newest-files:{thread.pk}:{limit}:{recorded['files']}:{last}"
    found: tuple[list[Entry], int] | None = cache.get(key)
    if found is None:
        found = _newest(thread, limit)
        cache.set(key, found, FRESH)
    return found


def _newest(thread: Thread, limit: int) -> tuple[list[Entry], int]:
    found = Folder(thread.pk).scan(settings.WAYMARK_WORKSPACE_FILES + 1).files.values()
    return sorted(found, key=lambda entry: (-entry.modified, entry.path))[:limit], len(found)


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
    hand, done = _noting(thread, "write_file", path, "has put a file into the workspace")
    with transaction.atomic():
        files.write(thread.pk, path, chunks, hand)
    return done[0]


def delete_file(thread: Thread, path: str) -> AgentAction | None:
    """Delete a file of the workspace. None: there is none, or it is a folder.

    Raises:
        FileRefused: it cannot be removed.
    """
    try:
        hand, done = _noting(thread, "delete_file", path, "has deleted a file of the workspace")
        with transaction.atomic():
            files.remove(thread.pk, path, hand)
        return done[0]
    except files.FileRefused as refused:
        if isinstance(refused.__cause__, Missing):
            return None
        raise


def _noting(thread: Thread, tool: str, path: str, news: str) -> tuple[files.Hand, list[AgentAction]]:
    """A hand of the user's that writes down what it does before it does it: what cannot be put on record, does not
    happen. Returns it, and where the record will be."""
    name, done = "/".join(files.named(path)), list[AgentAction]()

    def note(record: UndoRecord) -> None:
        done.append(by_person(thread, tool, {"path": name}, name, record, news, Effect.VERIFIABLE))

    return files.Hand(Writer.USER, may_write=note), done
