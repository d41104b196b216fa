"""Files on the disk that belong to nobody."""

from functools import partial
from itertools import islice

from agents.engine.health.finding import Finding
from tools.file_leftovers import is_lost, lost_files, lost_folders, remove_staged
from tools.sandbox.folder import Folder


def lost_workspaces(limit: int) -> list[Finding]:
    """Of agents that were deleted while a command had closed their files to us, or still wrote; and of the sandbox's
    trial, when its worker died."""
    return [
        Finding(f"workspace {folder.thread_id}", partial(_forget, folder)) for folder in islice(lost_folders(), limit)
    ]


def _forget(folder: Folder) -> bool:
    """Raises OSError: it cannot be removed still."""
    if not is_lost(folder) or not folder.home.exists():
        return False
    if not folder.forget():
        raise OSError(f"{folder.home} cannot be removed")
    return True


def staged_files(limit: int) -> list[Finding]:
    """What a worker was about to write when it died, and nobody will write any more."""
    return [
        Finding(f"staged file {path.name} of {path.parent.parent.name}", partial(remove_staged, path))
        for path in islice(lost_files(), limit)
    ]
