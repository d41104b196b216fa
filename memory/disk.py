"""How much room is left where Waymark writes. Standard library only, because the supervisor asks as well."""

import errno
import shutil
from pathlib import Path

# Below this PostgreSQL cannot even begin the next segment of its log. Bytes.
LEAST = 16_000_000
# A disk, or what its user may have of it, is full.
FULL = (errno.ENOSPC, errno.EDQUOT)


def free(folder: Path) -> int:
    """Bytes that ordinary users may still write on the disk of a folder.

    Raises:
        OSError: there is no such folder.
    """
    return shutil.disk_usage(folder).free


def is_full(folder: Path) -> bool:
    """Whether hardly a byte fits there any more. False when the folder is not there."""
    try:
        return free(folder) < LEAST
    except OSError:
        return False


def words(folder: Path) -> str:
    """What a person is told of a full disk, and what to do."""
    return f"The disk that holds {folder} is full. Free some space; nothing is lost, and no backup is needed"
