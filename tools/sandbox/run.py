"""One command in the sandbox, from its start until nothing of it is left (threat T13, cases FIL-02 to FIL-04).

Everything that it starts lives in a process namespace of its own, whose first process ends with ours and takes all
others along: also those that have left their session or lost their parents.
"""

import contextlib
import json
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from django.conf import settings

from tools.cancel import CancelToken
from tools.sandbox import seccomp
from tools.sandbox.box import walled, workspace_room
from tools.sandbox.disk import is_nearly_full
from tools.sandbox.folder import Folder
from tools.sandbox.output import Output
from tools.sandbox.watch import memory_of, processes_below, unnamed_bytes, wait_for_end

# Seconds between two looks, and how long the last process may take to be gone. Looking at many files takes long: it is
# done for a tenth of the time.
_LOOK: Final = 0.05
_PAUSES: Final = 9
_GONE_WITHIN: Final = 3.0
_STARTED_WITHIN: Final = 15.0
# A command that writes more than this is of no use to anybody. Bytes.
MOST_OUTPUT: Final = 1_000_000_000


class Ending(StrEnum):
    """Why a command ended. OVER: by itself."""

    OVER = "over"
    STOPPED = "stopped"
    TIME = "time"
    MEMORY = "memory"
    PROCESSES = "processes"
    FILES = "files"
    OUTPUT = "output"
    DISK = "disk"


class NotStarted(OSError):
    """The sandbox cannot be started."""


@dataclass(frozen=True, slots=True)
class Ended:
    """
    code: of its exit; None when it was ended. clean: whether nothing of it is left, which is certain.
    why: it was stopped (`tools.cancel`), else empty.
    """

    ending: Ending
    code: int | None
    output: Output
    seconds: float
    clean: bool
    why: str = ""


@dataclass(slots=True)
class _Watch:
    """Looks at a command that runs, and says when it has to end."""

    pid: int
    folder: Folder
    cancel: CancelToken
    seconds: float
    is_trial: bool
    output: Output = field(default_factory=Output)
    began: float = field(default_factory=time.monotonic)
    files_due: float = 0.0

    def ending(self) -> Ending | None:
        if self.cancel.is_set():
            return Ending.STOPPED
        if time.monotonic() - self.began > self.seconds:
            return Ending.TIME
        if self.output.total > MOST_OUTPUT:
            return Ending.OUTPUT
        if not self.is_trial and is_nearly_full():
            return Ending.DISK
        return self._crowded() or self._full()

    def _crowded(self) -> Ending | None:
        # Some of them are the sandbox itself; the limit of the kernel comes first, unless it has none.
        most = settings.WAYMARK_COMMAND_PROCESSES * 2 + 10
        pids = processes_below(self.pid, most)
        if len(pids) > most:
            return Ending.PROCESSES
        return Ending.MEMORY if memory_of(pids) > settings.WAYMARK_COMMAND_MEMORY else None

    def _full(self) -> Ending | None:
        if (since := time.monotonic()) < self.files_due:
            return None
        scan = self.folder.scan(settings.WAYMARK_WORKSPACE_FILES)
        unnamed = unnamed_bytes(processes_below(self.pid, settings.WAYMARK_COMMAND_PROCESSES * 2 + 10))
        now = time.monotonic()
        self.files_due = now + _PAUSES * (now - since)
        is_over = not scan.whole or scan.bytes + unnamed > settings.WAYMARK_WORKSPACE_BYTES
        return Ending.FILES if is_over else None


def run(
    folder: Folder,
    argv: Sequence[str],
    cancel: CancelToken,
    seconds: float | None = None,
    *,
    is_trial: bool = False,
) -> Ended:
    """Run a command to its end, which comes after `seconds` (WAYMARK_COMMAND_SECONDS) at the latest.

    Args:
        folder: which is there; when it goes meanwhile, with its agent, it is not made anew.
        is_trial: of the sandbox itself, which a disk that is nearly full says nothing about.

    Raises:
        NotStarted: nothing was run.
        OSError: the sandbox did not come about in time, or broke.
    """
    limit = settings.WAYMARK_COMMAND_SECONDS if seconds is None else seconds
    with _started(folder, list(argv)) as (process, first):
        watch = _Watch(process.pid, folder, cancel, limit, is_trial)
        with cancel.on_cancel(lambda: _kill(process)):
            ending = _followed(process, watch)
        code = _killed(process)
        clean = code is not None and (first is None or _is_gone(first))
    if cancel.is_set():
        ending = Ending.STOPPED
    seconds = time.monotonic() - watch.began
    return Ended(ending, code if ending is Ending.OVER else None, watch.output, seconds, clean, cancel.reason)


@contextlib.contextmanager
def _started(folder: Folder, argv: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], int | None]]:
    """Start a command; gives its process, and a descriptor of the first process of its sandbox once that is there."""
    told, tell = os.pipe()
    with open(told, "rb") as report:
        try:
            with seccomp.program() as filter_:
                process = subprocess.Popen(
                    walled(workspace_room(folder.files), argv, seccomp=filter_, info=tell),
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[each for each in (tell, filter_) if each is not None],
                    start_new_session=True,
                    cwd="/",
                )
        except OSError as error:
            raise NotStarted(*error.args) from error
        finally:
            os.close(tell)
        try:
            first = _first_process(_said(report.fileno()))
        except TimeoutError:
            _killed(process)
            raise
    try:
        yield process, first
    finally:
        _killed(process)
        assert process.stdout is not None
        process.stdout.close()
        if first is not None:
            os.close(first)


def _said(report: int) -> bytes:
    """What the sandbox says once it is there. Whoever else holds the other end must not hold us.

    Raises:
        TimeoutError: it says nothing for long.
    """
    poll, said = select.poll(), b""
    poll.register(report, select.POLLIN)
    while poll.poll(_STARTED_WITHIN * 1000):
        if not (piece := os.read(report, 4_096)):
            return said
        said += piece
        if said.rstrip().endswith(b"}"):
            return said
    raise TimeoutError("the sandbox did not start in time")


def _first_process(report: bytes) -> int | None:
    """None: the sandbox did not come about."""
    with contextlib.suppress(ValueError, KeyError, ProcessLookupError):
        return os.pidfd_open(json.loads(report)["child-pid"])
    return None


def _followed(process: subprocess.Popen[bytes], watch: _Watch) -> Ending:
    """Take in what a command writes until it ends, or has to."""
    assert process.stdout is not None
    stream = process.stdout.fileno()
    os.set_blocking(stream, False)
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        due = 0.0
        while process.poll() is None:
            if selector.select(_LOOK) and not _take(stream, watch.output):
                return _quietly(process, watch)  # it has closed its output, and may go on for long
            if time.monotonic() >= due:
                if (ending := watch.ending()) is not None:
                    return ending
                due = time.monotonic() + _LOOK
    _take_rest(stream, watch.output)
    return Ending.OVER


def _quietly(process: subprocess.Popen[bytes], watch: _Watch) -> Ending:
    while process.poll() is None:
        if (ending := watch.ending()) is not None:
            return ending
        time.sleep(_LOOK)
    return Ending.OVER


def _take(stream: int, output: Output) -> bool:
    """Take in a piece; false at the end."""
    try:
        piece = os.read(stream, 262_144)
    except BlockingIOError:
        return True
    output.add(piece)
    return bool(piece)


def _take_rest(stream: int, output: Output) -> None:
    """What is in the pipe when the command has ended; others may hold it open still."""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(stream, 262_144):
            output.add(piece)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _killed(process: subprocess.Popen[bytes]) -> int | None:
    """The code of its exit, once it is over; None when the system does not let go of it. What it has done by then is
    told nevertheless."""
    _kill(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_GONE_WITHIN)
    return None


def _is_gone(first: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(first, signal.SIGKILL)
    return wait_for_end(first, _GONE_WITHIN)
