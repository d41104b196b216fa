"""The folder of one agent on the disk: its files, what they were before they were changed, and what is about to be
written. Commands see `files` alone.

Every access goes by descriptors of folders beneath it, so a command that exchanges folders for links meanwhile changes
nothing (case FIL-01). Who may change it when is decided above (`tools.files`).
"""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings

from tools.sandbox.beneath import (
    Missing,
    OutOfReach,
    check_plain,
    is_sayable,
    open_file,
    open_folder,
)

CHUNK: Final = 1_000_000
_MODES: Final = 0o777


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder. taken: bytes on the disk, if those are more than its size.
    stamp: changes with every change of a file, and cannot be set by whoever changes it."""

    path: str
    kind: Kind
    size: int
    taken: int
    mode: int
    modified: float
    stamp: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def changed_at(self) -> datetime:
        return datetime.fromtimestamp(self.modified, UTC)


@dataclass(slots=True)
class Scan:
    """Everything in a workspace. odd: how many names there are that are neither plain files nor folders, or cannot be
    written down. whole: false when it ended at the limit of files, or could not look into a folder."""

    files: dict[str, Entry] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    odd: int = 0
    bytes: int = 0
    whole: bool = True

    @property
    def count(self) -> int:
        return len(self.files) + len(self.folders) + self.odd


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, and with which permissions."""

    sha256: str
    size: int
    mode: int


class Folder:
    """
    thread_id: of the agent. Nothing is made before something is written.
    """

    def __init__(self, thread_id: UUID) -> None:
        self.thread_id = thread_id
        self.home = Path(settings.WAYMARK_WORKSPACES) / str(thread_id)
        self.files, self.kept, self.staged = (self.home / name for name in ("files", "kept", "staged"))

    def make(self) -> None:
        """Only we enter it; what is in `files` belongs to whom commands run as."""
        if self.files.is_dir():
            return
        for each in (self.kept, self.staged):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home.chmod(0o700)
        with contextlib.suppress(FileExistsError):
            made = self.staged / str(uuid4())
            made.mkdir(mode=0o755)
            give_away(made)
            made.rename(self.files)

    def entries(self, parts: Sequence[str] = ()) -> list[Entry]:
        """What is in one folder, by name.

        Raises:
            OutOfReach: it is none, or a link is on the way.
        """
        descriptor = open_folder(self.files, parts)
        try:
            return sorted(_listed(descriptor, "/".join(parts)), key=lambda entry: entry.name)
        finally:
            os.close(descriptor)

    def scan(self, most: int) -> Scan:
        """Look at everything, at most so many names. Whatever vanishes meanwhile is left out."""
        scan, waiting = Scan(), [""]
        while waiting and scan.whole:
            path = waiting.pop()
            try:
                descriptor = open_folder(self.files, path.split("/") if path else ())
            except OutOfReach as problem:
                scan.whole = isinstance(problem, Missing)
                continue
            try:
                waiting += _counted(scan, _listed(descriptor, path), most)
            finally:
                os.close(descriptor)
        return scan

    def open(self, parts: Sequence[str]) -> int:
        """Open a file for reading; see `beneath.open_file`."""
        return open_file(self.files, parts)

    def entry(self, parts: Sequence[str]) -> Entry:
        """What is known of a file without reading it.

        Raises:
            OutOfReach: there is none, or a link is on the way.
        """
        descriptor = self.open(parts)
        try:
            return _entry("/".join(parts), os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def content(self, parts: Sequence[str], *, keep: bool = False) -> Content | None:
        """What a file holds; None when there is none.

        Args:
            keep: also keep it for an undo.

        Raises:
            OutOfReach: it is something else, or a link is on the way.
        """
        try:
            descriptor = self.open(parts)
        except Missing:
            return None
        with open(descriptor, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            found = os.fstat(descriptor)
            if keep and not self.keeps(digest):
                file.seek(0)
                digest = self._keep(file)
        return Content(digest, found.st_size, stat.S_IMODE(found.st_mode) & _MODES)

    def keeps(self, sha256: str) -> bool:
        """Whether that content is kept for an undo."""
        return (self.kept / sha256).is_file()

    def stage(self, staged: Path, chunks: Iterator[bytes]) -> Content:
        """Write the content that a file is to have beside the workspace, and make it last.

        Args:
            staged: a name of its own in `staged`.
        """
        self.make()
        digest, size = hashlib.sha256(), 0
        with staged.open("wb") as file:
            for chunk in chunks:
                digest.update(chunk)
                size += file.write(chunk)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        give_away(staged)
        return Content(digest.hexdigest(), size, 0o644)

    def stage_kept(self, content: Content) -> Path:
        """Stage what a file held before.

        Raises:
            OutOfReach: it is not kept any more.
        """
        staged = self.staged / str(uuid4())
        try:
            with (self.kept / content.sha256).open("rb") as file:
                found = self.stage(staged, iter(lambda: file.read(CHUNK), b""))
        except FileNotFoundError:
            raise OutOfReach("What was in it is not kept any more.") from None
        if found.sha256 != content.sha256:
            staged.unlink()
            raise OutOfReach("What was in it is not kept as it was.")
        return staged

    def put(self, staged: Path, parts: Sequence[str], mode: int) -> list[str]:
        """Let a file be what was staged, in one step; the staged one is gone then.

        Returns:
            The folders that were made for it.

        Raises:
            OutOfReach: something else has that name, or a link is on the way.
            OSError: it cannot be written. As long as the staged one is there, it was not.
        """
        staged.chmod(mode & _MODES)
        made: list[str] = []
        try:
            self._make_folders(parts[:-1], made)
            self._rename(staged, parts)
        except (OutOfReach, OSError):
            for folder in reversed(made):
                self.remove_if_empty(folder.split("/"))
            raise
        return made

    def is_link(self, parts: Sequence[str]) -> bool:
        """Whether a name is a link, which is looked at only."""
        with contextlib.suppress(OutOfReach):
            parent = open_folder(self.files, parts[:-1])
            try:
                with contextlib.suppress(FileNotFoundError):
                    return stat.S_ISLNK(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode)
            finally:
                os.close(parent)
        return False

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file; of a link the link itself, never what it leads to.

        Raises:
            OutOfReach: there is none, or it is a folder.
            OSError: it cannot be removed.
        """
        parent = open_folder(self.files, parts[:-1])
        try:
            os.unlink(parts[-1], dir_fd=parent)
        except FileNotFoundError:
            raise Missing from None
        except IsADirectoryError:
            raise OutOfReach("This is a folder.") from None
        finally:
            os.close(parent)

    def remove_if_empty(self, parts: Sequence[str]) -> bool:
        """Remove a folder unless something is in it; returns whether it is gone."""
        try:
            parent = open_folder(self.files, parts[:-1])
        except OutOfReach:
            return False
        try:
            os.rmdir(parts[-1], dir_fd=parent)
        except OSError:
            return False
        finally:
            os.close(parent)
        return True

    def forget(self) -> None:
        """Remove everything: the agent is gone."""
        shutil.rmtree(self.home, ignore_errors=True)

    def _rename(self, staged: Path, parts: Sequence[str]) -> None:
        parent = self._folder_to_be(parts[:-1])
        try:
            with contextlib.suppress(FileNotFoundError):
                check_plain(os.stat(parts[-1], dir_fd=parent, follow_symlinks=False))
            os.rename(staged, parts[-1], dst_dir_fd=parent)
            os.fsync(parent)
        except OutOfReach as error:
            raise OutOfReach(f"{error} Nothing was written over it.") from error
        finally:
            os.close(parent)

    def _make_folders(self, parts: Sequence[str], made: list[str]) -> None:
        """Make those that are not there; what was made is added to `made`."""
        for depth in range(len(parts)):
            parent = self._folder_to_be(parts[:depth])
            try:
                os.mkdir(parts[depth], 0o755, dir_fd=parent)
                give_away(parts[depth], parent)
                made.append("/".join(parts[: depth + 1]))
            except FileExistsError:
                continue
            finally:
                os.close(parent)

    def _folder_to_be(self, parts: Sequence[str]) -> int:
        try:
            return open_folder(self.files, parts)
        except OutOfReach as error:
            raise OutOfReach("A folder on the way is a file or a link.") from error

    def _keep(self, file: Iterator[bytes]) -> str:
        """Take a copy; what it is called follows from what was read, which may have been changed since."""
        staged = self.staged / str(uuid4())
        content = self.stage(staged, file)
        staged.rename(self.kept / content.sha256)
        self._let_go(settings.WAYMARK_WORKSPACE_KEPT)
        return content.sha256

    def _let_go(self, most: int) -> None:
        """Keep at most so many bytes; the oldest go."""
        found = sorted(((each.stat(), each) for each in self.kept.iterdir()), key=lambda pair: -pair[0].st_ctime_ns)
        total = 0
        for state, path in found:
            total += state.st_size
            if total > most:
                path.unlink(missing_ok=True)


def give_away(path: str | Path, parent: int | None = None) -> None:
    """Let a file belong to whom commands run as, when that is somebody else."""
    if os.geteuid() == 0:
        owner = settings.WAYMARK_SANDBOX_UID
        os.chown(path, owner, owner, dir_fd=parent, follow_symlinks=False)


def _counted(scan: Scan, entries: Iterator[Entry], most: int) -> list[str]:
    """Add the entries of one folder to the scan; returns the folders among them."""
    deeper = []
    for entry in entries:
        if scan.count >= most:
            scan.whole = False
            break
        scan.bytes += entry.taken
        if entry.kind is Kind.FOLDER and is_sayable(entry.path):
            scan.folders.add(entry.path)
            deeper.append(entry.path)
        elif entry.kind is Kind.FILE:
            scan.files[entry.path] = entry
        else:
            scan.odd += 1
            scan.whole &= entry.kind is not Kind.FOLDER  # what is in it cannot be counted
    return deeper


def _listed(descriptor: int, path: str) -> Iterator[Entry]:
    with os.scandir(descriptor) as found:
        for each in found:
            with contextlib.suppress(FileNotFoundError):
                yield _entry(f"{path}/{each.name}" if path else each.name, each.stat(follow_symlinks=False))


def _entry(path: str, found: os.stat_result) -> Entry:
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and is_sayable(path):
        kind = Kind.FILE
    elif stat.S_ISDIR(found.st_mode):
        kind = Kind.FOLDER
    else:
        kind = Kind.LINK if stat.S_ISLNK(found.st_mode) else Kind.OTHER
    taken = max(found.st_size, found.st_blocks * 512)
    stamp = f"{found.st_ino}:{found.st_ctime_ns}:{found.st_size}"
    return Entry(path, kind, found.st_size, taken, stat.S_IMODE(found.st_mode) & _MODES, found.st_mtime, stamp)
