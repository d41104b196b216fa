"""What processes use, as the kernel counts it."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def cpu_ms(pids: Iterable[int]) -> float:
    """CPU time so far, user and system, of processes that all still run."""
    return sum(time.clock_gettime_ns(_cpu_clock(pid)) for pid in pids) / 1e6


def _cpu_clock(pid: int) -> int:
    """The id of a process's own clock on Linux; /proc only says how many hundredths of a second it was seen to run."""
    return ~pid << 3 | 2


def tree_cpu_ms(root: int) -> float:
    """CPU time so far of a process, its children, and those of them that have ended."""
    while True:
        ended = sum(map(int, Path(f"/proc/{root}/stat").read_text().rpartition(")")[2].split()[13:15])) * TICK_MS
        with suppress(OSError):  # one has ended meanwhile
            return cpu_ms([root, *children(root)]) + ended


def pss_mb(pids: Iterable[int]) -> float:
    """Memory in millions of bytes; what processes share is divided among them."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total * 1024 / 1e6


def children(parent: int, name: str = "") -> list[int]:
    """The direct children that run, or those of them whose program has that name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                text = (entry / "stat").read_text()
                program, rest = text[text.index("(") + 1 : text.rindex(")")], text.rpartition(")")[2].split()
                if int(rest[1]) == parent and program.startswith(name):
                    found.append(int(entry.name))
    return found
