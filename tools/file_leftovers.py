"""What lies on the disk and belongs to nobody: folders of agents that are gone, which could not be removed with them or
were made by the sandbox's own trial, and files that were staged by a worker that died."""

from collections.abc import Iterable, Iterator
from itertools import batched
from pathlib import Path
from time import time
from typing import Final
from uuid import UUID

from django.conf import settings

from memory.models import Thread
from tools.file_models import FileWrite
from tools.sandbox.folder import Folder

# Seconds. Longer than anybody needs from a folder to the commit of who owns it, or for a trial; and for a write.
_YOUNG_FOLDER: Final = 3_600
_YOUNG_FILE: Final = 86_400
_AT_ONCE: Final = 500


def lost_folders() -> Iterator[Folder]:
    """Folders that belong to no agent any more."""
    old = (home for home in _homes() if _is_older(home, _YOUNG_FOLDER))
    for homes in batched(old, _AT_ONCE):
        ids = {UUID(home.name) for home in homes}
        yield from map(Folder, sorted(ids.difference(Thread.objects.filter(pk__in=ids).values_list("pk", flat=True))))


def is_lost(folder: Folder) -> bool:
    return not Thread.objects.filter(pk=folder.thread_id).exists()


def lost_files() -> Iterator[Path]:
    """Staged files of writes that will not happen: no record names them, and they are old. Of a record's, as long as
    it is there, its write may be made yet (docs/reliability.md, "Files")."""
    for homes in batched(_homes(), _AT_ONCE):
        staged = [path for home in homes for path in _inside(home / "staged") if _is_older(path, _YOUNG_FILE)]
        named = [call for path in staged if (call := _id(path))]
        awaited = set(FileWrite.objects.filter(pk__in=named).values_list("pk", flat=True))
        yield from (path for path in staged if _id(path) not in awaited)


def remove_staged(path: Path) -> bool:
    """Returns whether it was there."""
    try:
        path.rmdir() if path.is_dir() else path.unlink()
    except FileNotFoundError:
        return False
    return True


def _homes() -> Iterable[Path]:
    return (path for path in _inside(Path(settings.WAYMARK_WORKSPACES)) if _id(path))


def _inside(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _id(path: Path) -> UUID | None:
    try:
        return UUID(path.name)
    except ValueError:
        return None


def _is_older(path: Path, seconds: float) -> bool:
    try:
        return path.stat(follow_symlinks=False).st_mtime < time() - seconds
    except FileNotFoundError:
        return False
