"""Direct children that never outlive their parent, and how to wait for them and stop them."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from config.embedded.account import Account
from config.embedded.errors import StartError
from memory import disk

READY_SECONDS = 120.0
POLL_SECONDS = 0.02
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
FULL_DISK = [os.strerror(number) for number in disk.FULL]
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Process(Protocol):
    """What is used of `subprocess.Popen`, so that forked children can look the same."""

    pid: int

    def poll(self) -> int | None: ...
    def send_signal(self, sig: int) -> None: ...


class Server(Protocol):
    """A program that this process starts, knows to be ready, and stops."""

    name: str
    log: Path
    files: Path  # where it writes
    stop_signal: signal.Signals
    stop_seconds: float
    last_signal: signal.Signals

    def spawn(self) -> Process:
        """Start it, without waiting until it is ready."""
        ...

    def is_ready(self) -> bool:
        """Whether it answers now."""
        ...


def spawn(command: Sequence[str], *, log: Path, account: Account | None, death_signal: int) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own, so that Ctrl-C reaches only its parent.

    Args:
        log: its output is appended here; opened before the change of user.
        account: the user it runs as; None keeps the caller's.
        death_signal: what the kernel sends it when this process ends in whatever way (Linux).
    """
    parent = os.getpid()
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            process_group=0,
            preexec_fn=lambda: die_with_parent(parent, death_signal),  # noqa: PLW1509 (no threads here yet)
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )


def die_with_parent(parent: int, death_signal: int) -> None:
    """In a new child: have the kernel send `death_signal` to it when `parent` ends. Elsewhere than on Linux: nothing.

    The kernel forgets the wish when the user changes, so this comes after that.
    """
    if LIBC is None:
        return
    LIBC.prctl(PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:  # it ended before the wish was heard
        os._exit(1)


def call_oneself(name: str) -> None:
    """Have `ps -e`, `top` and `pgrep` show this process under a name of at most 15 letters. Elsewhere: nothing."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_NAME, name.encode())


def wait_ready(process: Process, server: Server, seconds: float = READY_SECONDS) -> None:
    """Return when the server answers; raise StartError when it ends or is silent for too long."""
    deadline = time.monotonic() + seconds
    while not server.is_ready():
        if process.poll() is not None:
            raise StartError(f"{server.name} did not start. {last_words(server.log, server.files)}")
        if time.monotonic() > deadline:
            raise StartError(f"{server.name} is not ready after {seconds:.0f} s; see {server.log}.")
        time.sleep(POLL_SECONDS)


def stopped(process: Process, server: Server) -> None:
    """Stop a server and wait until it is gone: politely, then without mercy."""
    for sig, seconds in ((server.stop_signal, server.stop_seconds), (server.last_signal, 5.0), (signal.SIGKILL, 60.0)):
        if process.poll() is None:
            process.send_signal(sig)
        if gone(process, seconds):
            return


def gone(process: Process, seconds: float) -> bool:
    """Whether the process ends within that time."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def last_words(log: Path, files: Path) -> str:
    """Why a process ended, for a person: the end of its log, or that the disk of its files is full."""
    words = tail(log)
    return f"{disk.words(files)}." if is_disk_full(words, files) else f"Its last words, from {log}:\n{words}"


def is_disk_full(words: str, files: Path) -> bool:
    """Whether a full disk is what ends a process, by what it said, or by the disk of its files: there may have been no
    room to say it. What PostgreSQL says ends with the advice to restore a backup, so it is kept from people."""
    return disk.is_full(files) or any(sign in words for sign in FULL_DISK)


def tail(log: Path | None, lines: int = 12) -> str:
    """The last lines of a log file, indented; empty when there is none."""
    if log is None:
        return ""
    try:
        text = log.read_text(errors="replace")[-8_000:]
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])
