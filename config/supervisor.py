"""Keeps the processes of `bin/up` alive until it is told to stop, then stops them in order."""

import math
import os
import select
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from config.children import UNFIT
from config.console import Console
from config.embedded.errors import StartError
from config.embedded.process import Process, is_disk_full, last_words, tail
from memory import disk

STABLE_SECONDS = 30.0  # who lived so long starts with a clean record
PATIENCE_SECONDS = 300.0  # what dies again and again for so long is given up
LONGEST_WAIT = 16.0
LAST_SECONDS = 5.0
QUIET_SECONDS = 1.0  # who stops sooner need not be explained
TICK_SECONDS = 5.0
LARGEST_LOG = 16_000_000
MISFIT = (
    "the program was changed while Waymark runs, and the database is that of before. Runs wait. Stop Waymark and start "
    "it again (docs/operations.md, Upgrade and going back)."
)


class Interrupted(Exception):
    """Somebody wants us to stop while we are still starting."""


class Signals:
    """Ctrl-C, SIGTERM and a closed terminal, and the deaths of children, as things to wait for.

    Until `calm` is called the first of them raises `Interrupted`; after that they are counted.
    """

    def __init__(self) -> None:
        self.count = 0
        self._raises = True
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, self._asked)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def calm(self) -> None:
        self._raises = False

    def wait(self, seconds: float) -> None:
        """Return after a signal, or when the time is over."""
        select.select([self._reader], [], [], max(seconds, 0))
        with suppress(BlockingIOError):
            os.read(self._reader, 512)

    def _asked(self, sig: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._raises:
            self._raises = False
            raise Interrupted


@dataclass
class Service:
    """One process to keep alive.

    Args:
        order: services of a lower order are stopped first.
        log: None when it writes to the console.
        stop_signal, stop_seconds: how it is asked to end, and how long it may take.
        hurried_seconds: how long it may take when somebody presses Ctrl-C twice.
        last_signal: what it gets when it takes longer.
        group: whether what it started itself is ended with it.
        files: where it writes.
    """

    name: str
    start: Callable[[], Process]
    order: int
    log: Path | None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 40.0
    hurried_seconds: float = 0.0
    last_signal: signal.Signals = signal.SIGKILL
    group: bool = True
    files: Path = Path()
    process: Process | None = None
    began: float = 0.0
    failures: int = 0
    failing_since: float = 0.0
    due: float = 0.0
    pushes: int = 0

    def begin(self, process: Process | None = None) -> Process:
        """Start it, unless somebody has done so already."""
        self.began = time.monotonic()
        self.process = process or self.start()
        return self.process

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def count_death(self, now: float) -> None:
        """Short lives count from the first of them on; a long one ends the row."""
        if now - self.began > STABLE_SECONDS:
            self.failures = 0
            return
        self.failing_since = self.failing_since if self.failures else now
        self.failures += 1

    def push(self, spent: float, hurried: bool) -> None:
        """Send the signal that is due after so many seconds of stopping, each of the three once."""
        allowed = self.hurried_seconds if hurried else self.stop_seconds
        steps = ((0.0, self.stop_signal), (allowed, self.last_signal), (allowed + LAST_SECONDS, signal.SIGKILL))
        while self.pushes < len(steps) and spent >= steps[self.pushes][0]:
            if self.process is not None and self.alive:
                self.process.send_signal(steps[self.pushes][1])
            self.pushes += 1

    def sweep(self) -> None:
        """End what the process left in its group."""
        if self.group and self.process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


class Supervisor:
    """Owns the services; leaving its block stops them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._services: list[Service] = []
        self.signals = Signals()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.signals.calm()
        self._stop()

    def add(self, service: Service, process: Process | None = None) -> Process:
        """Start a service, or take over its process that runs already, and keep it from now on."""
        self._services.append(service)
        return service.begin(process)

    def run(self) -> None:
        """Restart what dies, until somebody asks to stop.

        Raises:
            StartError: something dies again and again.
        """
        self.signals.calm()
        while not self.signals.count:
            for service in self._services:
                self._tend(service)
                _shorten(service.log)
            _shorten(self._console.log)
            waiting = [service.due - time.monotonic() for service in self._services if service.process is None]
            self.signals.wait(min([TICK_SECONDS, *waiting]))

    def _tend(self, service: Service) -> None:
        now = time.monotonic()
        if service.process is None:
            if now >= service.due:
                self._begin_again(service)
        elif (code := service.process.poll()) is not None:
            service.sweep()
            self._note_death(service, code, now)

    def _begin_again(self, service: Service) -> None:
        try:
            process = service.begin()
            self._console.say(f"{service.name} started again, process {process.pid}")
        except (OSError, StartError) as error:
            self._console.say(f"{service.name}: {error}")
            self._note_death(service, 1, time.monotonic())

    def _note_death(self, service: Service, code: int, now: float) -> None:
        """Say so, and set when to try again: at once after a long life, later and later after short ones, never when
        the program has been changed and the database has not. A full disk is waited for without end: when there is room
        again, nobody need come and start Waymark."""
        service.process = None
        if code == UNFIT:
            self._console.say(f"{service.name} does not start: {MISFIT}")
            service.due = math.inf
            return
        how = f"ended with code {code}" if code >= 0 else f"was killed by signal {-code}"
        is_full = is_disk_full(tail(service.log) if code >= 0 else "", service.files)
        service.count_death(now)
        if service.failures and now - service.failing_since >= PATIENCE_SECONDS and not is_full:
            words = f" {last_words(service.log, service.files)}" if service.log and code >= 0 else ""
            raise StartError(f"{service.name} {how}, {service.failures} times in a row.{words}")
        self._console.say(f"{service.name} {how}" + (f". {disk.words(service.files)}" if is_full else ""))
        service.due = now + (0 if service.failures < 2 else min(2.0 ** (service.failures - 2), LONGEST_WAIT))

    def _stop(self) -> None:
        if any(service.alive for service in self._services):
            self._console.say("Stopping …")
        asked = self.signals.count
        for order in sorted({service.order for service in self._services}):
            self._stop_together([service for service in self._services if service.order == order], asked)

    def _stop_together(self, services: list[Service], asked: int) -> None:
        """Ask all and wait for all; whoever takes too long, or longer than one more Ctrl-C allows, is ended."""
        began, is_told = time.monotonic(), False
        while True:
            spent, hurried = time.monotonic() - began, self.signals.count > asked
            for service in services:
                service.push(spent, hurried)
            alive = [service for service in services if service.alive]
            if not alive:
                break
            if spent > QUIET_SECONDS and not is_told and not hurried:
                is_told = True
                self._say_for_whom_we_wait(alive)
            self.signals.wait(0.1)
        for service in services:
            service.sweep()

    def _say_for_whom_we_wait(self, services: list[Service]) -> None:
        names = " and ".join(service.name for service in services)
        most = max(service.stop_seconds for service in services)
        self._console.say(f"{names} still at work; waiting {most:.0f} s at most. Ctrl-C again does not wait.")


def _shorten(log: Path | None) -> None:
    """Put a log that has grown large aside, over the one before. Its writers append, so they go on in the empty one. On
    a full disk it stays as it is: it does not grow there."""
    if log is not None and log.exists() and log.stat().st_size > LARGEST_LOG:
        aside = log.with_name(f"{log.name}.1")
        try:
            shutil.copyfile(log, aside)
        except OSError:
            aside.unlink(missing_ok=True)
        else:
            os.truncate(log, 0)
