"""What is in a folder, as the system tells it; nothing is opened or followed."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from tools.sandbox.beneath import is_sayable

MODES: Final = 0o777


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


def counted(scan: Scan, entries: Iterator[Entry], most: int) -> list[str]:
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


def listed(descriptor: int, path: str) -> Iterator[Entry]:
    """The entries of an open folder. path: of the folder."""
    with os.scandir(descriptor) as found:
        for each in found:
            with contextlib.suppress(FileNotFoundError):
                yield entry_from(f"{path}/{each.name}" if path else each.name, each.stat(follow_symlinks=False))


def entry_from(path: str, found: os.stat_result) -> Entry:
    """What the system tells of one name."""
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and is_sayable(path):
        kind = Kind.FILE
    elif stat.S_ISDIR(found.st_mode):
        kind = Kind.FOLDER
    else:
        kind = Kind.LINK if stat.S_ISLNK(found.st_mode) else Kind.OTHER
    taken = max(found.st_size, found.st_blocks * 512)
    stamp = f"{found.st_ino}:{found.st_ctime_ns}:{found.st_size}"
    return Entry(path, kind, found.st_size, taken, stat.S_IMODE(found.st_mode) & MODES, found.st_mtime, stamp)
