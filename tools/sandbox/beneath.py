"""Opening what lies beneath a folder, whatever stands in it: no path and no link leads out (threat T14, case FIL-01).

The kernel does it in one step where it can (`openat2`, Linux 5.6). Where it cannot, the path is walked part by part,
each opened from the one before without following links: as paths with `..` are refused before, that leads nowhere else
either, and nothing that is exchanged meanwhile changes it.
"""

import ctypes
import errno
import os
import stat
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final

MOUNT: Final = "/workspace"
"""Where a command sees its workspace; paths that begin so are understood."""
LONGEST_PATH: Final = 1_000
LONGEST_PART: Final = 255
_OPENAT2: Final = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_AWAY: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_libc = ctypes.CDLL(None, use_errno=True)

ABSENT: Final = "There is no such file in the workspace."
OUTSIDE: Final = "A path must stay inside the workspace: relative, and without “..”."


class OutOfReach(Exception):
    """The path leads to nothing that may be opened; the message is for people and models. It is the same whether
    there is something at the other end of a link or not."""


class Missing(OutOfReach):
    """There is nothing under that name."""

    def __init__(self) -> None:
        super().__init__(ABSENT)


class _How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def parts_of(path: str) -> tuple[str, ...]:
    """Return the parts of a path as people, models and browsers give it; none for the workspace itself.

    Raises:
        OutOfReach: it is absolute (but for MOUNT), leads upwards, is too long, or has characters that no name has.
    """
    inside = path.strip().removeprefix(MOUNT) if _begins_at_mount(path.strip()) else path.strip()
    if inside.startswith("/") and inside == path.strip():
        raise OutOfReach(OUTSIDE)
    parts = tuple(part for part in inside.split("/") if part not in ("", "."))
    if ".." in parts:
        raise OutOfReach(OUTSIDE)
    if not is_sayable(inside) or any(len(part.encode()) > LONGEST_PART for part in parts):
        raise OutOfReach("This is no name for a file: it is too long, or has characters that cannot be seen.")
    return parts


def is_sayable(path: str) -> bool:
    """Whether a path can be written down and read: no control characters, nothing that turns the reading order, and no
    blanks that nobody sees at the ends of its names."""
    if any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in path):
        return False
    if any(part != part.strip() for part in path.split("/")):
        return False
    return len(path.encode()) <= LONGEST_PATH


def open_folder(root: str | os.PathLike[str], parts: Sequence[str] = ()) -> int:
    """Open a folder beneath `root`; the caller closes it.

    Raises:
        OutOfReach: it is none, or a link is on the way.
    """
    return _open(root, parts, os.O_RDONLY | os.O_DIRECTORY)


def open_file(root: str | os.PathLike[str], parts: Sequence[str]) -> int:
    """Open a file beneath `root` for reading: a regular one, with one name only; the caller closes it.

    Raises:
        Missing: there is none.
        OutOfReach: it is something else, or a link is on the way.
    """
    descriptor = _open(root, parts, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_plain(os.fstat(descriptor))
    except OutOfReach:
        os.close(descriptor)
        raise
    return descriptor


def check_plain(found: os.stat_result) -> None:
    """
    Raises:
        OutOfReach: it is no regular file, or has more than one name.
    """
    if stat.S_ISDIR(found.st_mode):
        raise OutOfReach("This is a folder.")
    if stat.S_ISLNK(found.st_mode):
        raise OutOfReach("This is a link; links are not followed.")
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise OutOfReach("This is no plain file.")


def _open(root: str | os.PathLike[str], parts: Sequence[str], flags: int) -> int:
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    if ".." in parts:
        raise OutOfReach(OUTSIDE)
    try:
        start = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Missing from None
    try:
        return _resolve(start, parts, flags) if has_openat2() else _walk(start, parts, flags)
    except OSError as error:
        raise _explained(error) from error
    finally:
        os.close(start)


def _explained(error: OSError) -> OutOfReach:
    if error.errno in _AWAY:
        return Missing()
    if error.errno == errno.ELOOP:
        return OutOfReach("There is a link on the way; links are not followed.")
    return OutOfReach(f"This cannot be opened: {error.strerror}.")


def _resolve(start: int, parts: Sequence[str], flags: int) -> int:
    how = _How(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    path = os.fsencode("/".join(parts) or ".")
    found: int = _libc.syscall(_OPENAT2, start, path, ctypes.byref(how), ctypes.sizeof(how))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found


def _walk(start: int, parts: Sequence[str], flags: int) -> int:
    """A link where a folder is expected is ENOTDIR, so it is told apart from nothing only at the end of the path."""
    here = os.dup(start)
    try:
        for part in parts[:-1]:
            step = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = step
        return os.open(parts[-1] if parts else ".", flags, dir_fd=here)
    finally:
        os.close(here)


@cache
def has_openat2() -> bool:
    """Whether this kernel has it, and lets us use it: containers may refuse system calls that they do not know."""
    start = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(_resolve(start, (), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return False
    finally:
        os.close(start)
    return True


def _begins_at_mount(path: str) -> bool:
    return path == MOUNT or path.startswith(f"{MOUNT}/")
