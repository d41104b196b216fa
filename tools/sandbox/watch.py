"""What a command does while it runs: its processes, their memory, the room that its files take."""

import contextlib
import os
import select
import stat
from collections.abc import Iterable
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def processes_below(pid: int, most: int) -> list[int]:
    """A process and all that it has started and that live, as far as they belong to it still; `most` + some at most.

    Whoever loses its parent inside a sandbox is given to the first process there, so nobody leaves the tree.
    """
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) <= most:
        each = waiting.pop()
        found.append(each)
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{thread}/children") as children:
                    waiting += map(int, children.read().split())
    return found


def memory_of(pids: Iterable[int]) -> int:
    """Bytes of memory that processes hold; what they share counts for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm") as figures:
            total += int(figures.read().split()[1]) * _PAGE
    return total


def unnamed_bytes(pids: Iterable[int]) -> int:
    """Bytes on the disk of files that processes hold open and that have no name any more, so that no folder shows
    them. A file that several hold counts once."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    state = os.stat(f"/proc/{pid}/fd/{descriptor}")
                    if stat.S_ISREG(state.st_mode) and state.st_nlink == 0:
                        found[state.st_dev, state.st_ino] = state.st_blocks * 512
    return sum(found.values())


def wait_for_end(descriptor: int, seconds: float) -> bool:
    """Wait until a process has ended, and with it, if it is the first of a sandbox, all others in it.

    Args:
        descriptor: of the process (`os.pidfd_open`).
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
