"""The folder of one agent on the disk: its files, what they were before they were changed, and what is about to be
written. Commands see `files` alone.

Every access goes by descriptors of folders beneath it, so a command that exchanges folders for links meanwhile changes
nothing (case FIL-01). Who may change it when is decided above (`tools.files`).
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings

from tools.sandbox.beneath import (
    Missing,
    OutOfReach,
    check_plain,
    open_file,
    open_folder,
)
from tools.sandbox.listing import MODES, Entry, Scan, counted, entry_from, listed
from tools.sandbox.removal import removed
from tools.sandbox.staging import Content, Kept, give_away, stage


class Folder:
    """
    thread_id: of the agent. Nothing is made before something is written.
    """

    def __init__(self, thread_id: UUID) -> None:
        self.thread_id = thread_id
        self.home = Path(settings.WAYMARK_WORKSPACES) / str(thread_id)
        self.files, self.staged = self.home / "files", self.home / "staged"
        self.kept = Kept(self.home / "kept", self.staged)

    def make(self) -> None:
        """Only we enter it; what is in `files` belongs to whom commands run as."""
        if self.files.is_dir():
            return
        for each in (self.kept.folder, self.staged):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home.chmod(0o700)
        made = self.staged / str(uuid4())
        made.mkdir(mode=0o755)
        give_away(made)
        try:
            made.rename(self.files)
        except OSError:  # somebody else was first, and has written into it
            made.rmdir()

    def entries(self, parts: Sequence[str] = ()) -> list[Entry]:
        """What is in one folder, by name. As long as nothing was written, nothing is.

        Raises:
            OutOfReach: it is none, or a link is on the way.
        """
        if not parts and not self.files.exists():
            return []
        descriptor = open_folder(self.files, parts)
        try:
            return sorted(listed(descriptor, "/".join(parts)), key=lambda entry: entry.name)
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
                waiting += counted(scan, listed(descriptor, path), most)
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
            return entry_from("/".join(parts), os.fstat(descriptor))
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
            if keep and not self.kept.renewed(digest):
                file.seek(0)
                digest = self.kept.keep(file)
        return Content(digest, found.st_size, stat.S_IMODE(found.st_mode) & MODES)

    def stage(self, staged: Path, chunks: Iterator[bytes]) -> Content:
        """Write the content that a file is to have beside the workspace, and make it last.

        Args:
            staged: a name of its own in `staged`.
        """
        return stage(staged, chunks)

    def put(self, staged: Path, parts: Sequence[str], mode: int) -> list[str]:
        """Let a file be what was staged, in one step; the staged one is gone then.

        Returns:
            The folders that were made for it.

        Raises:
            OutOfReach: something else has that name, or a link is on the way.
            OSError: it cannot be written. As long as the staged one is there, it was not.
        """
        staged.chmod(mode & MODES)
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

    def forget(self) -> bool:
        """Remove everything: the agent is gone. Returns whether nothing is left; what is, is logged, and the health
        monitor tries again."""
        return removed(self.home)

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
