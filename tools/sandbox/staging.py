"""Contents of files beside a workspace, where no command sees them: what is about to be written, and what is kept of
earlier times for an undo."""

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

    def keep(self, file: Iterable[bytes]) -> str:
        """Take a copy; what it is called follows from what was read, which may have been changed since."""
        staged = self.staged / str(uuid4())
        content = stage(staged, file)
        staged.rename(self.folder / content.sha256)
        self._let_go(settings.WAYMARK_WORKSPACE_KEPT)
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

    def _let_go(self, most: int) -> None:
        """Keep at most so many bytes; the oldest go."""
        found = sorted(((each.stat(), each) for each in self.folder.iterdir()), key=lambda pair: -pair[0].st_ctime_ns)
        total = 0
        for state, path in found:
            total += state.st_size
            if total > most:
                path.unlink(missing_ok=True)


def stage(staged: Path, chunks: Iterable[bytes]) -> Content:
    """Write a content to a place of its own, and make it last."""
    digest, size = hashlib.sha256(), 0
    with staged.open("wb") as file:
        for chunk in chunks:
            digest.update(chunk)
            size += file.write(chunk)
        os.fchmod(file.fileno(), NEW_MODE)
        file.flush()
        os.fsync(file.fileno())
    give_away(staged)
    return Content(digest.hexdigest(), size, NEW_MODE)


def give_away(path: str | Path, parent: int | None = None) -> None:
    """Let a file belong to whom commands run as, when that is somebody else."""
    if os.geteuid() == 0:
        owner = settings.WAYMARK_SANDBOX_UID
        os.chown(path, owner, owner, dir_fd=parent, follow_symlinks=False)
