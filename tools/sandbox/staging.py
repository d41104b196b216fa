"""Contents of files beside a workspace, where no command sees them: what is about to be written, and what is kept of
earlier times for an undo."""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from django.conf import settings

from tools.sandbox.beneath import OutOfReach

CHUNK: Final = 1_000_000
NEW_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, and with which permissions."""

    sha256: str
    size: int
    mode: int


class Kept:
    """Contents by their hash.

    folder: where they are. staged: a folder on the same volume.
    """

    def __init__(self, folder: Path, staged: Path) -> None:
        self.folder, self.staged = folder, staged

    def holds(self, sha256: str) -> bool:
        return (self.folder / sha256).is_file()

    def renewed(self, sha256: str) -> bool:
        """Let what is held count as kept just now; returns whether it is."""
        try:
            os.utime(self.folder / sha256)
        except FileNotFoundError:
            return False
        return True

    def keep(self, file: Iterable[bytes]) -> str:
        """Take a copy; what it is called follows from what was read, which may have been changed since. Whoever keeps
        something lets go of the oldest afterwards."""
        staged = self.staged / str(uuid4())
        content = stage(staged, file)
        staged.rename(self.folder / content.sha256)
        return content.sha256

    def stage(self, content: Content) -> Path:
        """Stage what a file held before.

        Raises:
            OutOfReach: it is not kept any more.
        """
        staged = self.staged / str(uuid4())
        try:
            with (self.folder / content.sha256).open("rb") as file:
                found = stage(staged, iter(lambda: file.read(CHUNK), b""))
        except FileNotFoundError:
            raise OutOfReach("What was in it is not kept any more.") from None
        if found.sha256 != content.sha256:
            staged.unlink()
            raise OutOfReach("What was in it is not kept as it was.")
        return staged

    def let_go(self) -> None:
        """Keep WAYMARK_WORKSPACE_KEPT bytes at most; what was kept last the longest ago goes."""
        found: list[tuple[int, int, Path]] = []
        for path in self.folder.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # somebody else lets go of it
                state = path.stat()
                found.append((state.st_ctime_ns, state.st_size, path))
        total = 0
        for _, size, path in sorted(found, reverse=True):
            total += size
            if total > settings.WAYMARK_WORKSPACE_KEPT:
                path.unlink(missing_ok=True)


def stage(staged: Path, chunks: Iterable[bytes]) -> Content:
    """Write a content to a place of its own, and make it last; nothing is left of what cannot be written as a whole."""
    digest, size = hashlib.sha256(), 0
    try:
        with staged.open("wb") as file:
            for chunk in chunks:
                digest.update(chunk)
                size += file.write(chunk)
            os.fchmod(file.fileno(), NEW_MODE)
            file.flush()
            os.fsync(file.fileno())
        give_away(staged)
    except BaseException:
        with contextlib.suppress(OSError):
            staged.unlink()
        raise
    return Content(digest.hexdigest(), size, NEW_MODE)


def give_away(path: str | Path, parent: int | None = None) -> None:
    """Let a file belong to whom commands run as, when that is somebody else."""
    if os.geteuid() == 0:
        owner = settings.WAYMARK_SANDBOX_UID
        os.chown(path, owner, owner, dir_fd=parent, follow_symlinks=False)
