"""Where the program is loaded once and web and workers are forked from, so that they share its memory.

It leaves as soon as they are born: while it stayed, it would keep the old copy of every page that they replace. The
supervisor, which itself never loads the program, adopts them (on Linux; elsewhere it starts each by itself).
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from config.children import Forked, fork, preload, require_fit
from config.embedded.errors import StartError
from config.embedded.process import LIBC, last_words

PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.005
ASKING_TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Program:
    """
    name: under which the system lists it.
    log: where its output goes; None leaves it on the console.
    keep: descriptors that it may use.
    """

    name: str
    run: Callable[[], None]
    log: Path | None
    keep: tuple[int, ...] = ()

    def start(self) -> Forked:
        """Without the nursery, when it is started again: loads everything anew."""
        return fork(self._load_and_run, log=self.log, keep=self.keep, name=self.name)

    def _load_and_run(self) -> None:
        preload()
        require_fit()
        self.run()


class Nursery:
    """Begins to load at once, beside whatever else its parent does. Leaving its block ends it.

    Args:
        prepare: called once, in a process of its own, which may have connections; returns what to show to the person.
        programs: by name, what is to be forked in the end.
        log: the output of all this.
    """

    def __init__(self, prepare: Callable[[], str], programs: Mapping[str, Program], log: Path) -> None:
        self._prepare, self._programs, self._log = prepare, programs, log
        self._heir = os.getpid()
        log.unlink(missing_ok=True)
        orders, self._orders = os.pipe()
        answers, self._answers = os.pipe()
        keep = (orders, self._answers, *(number for each in programs.values() for number in each.keep))
        self._process = fork(lambda: self._live(orders), log=log, keep=keep)
        os.close(orders)
        os.close(self._answers)
        self._lines = os.fdopen(answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._wait(self._process)
        self._lines.close()
        os.close(self._orders)

    def prepare(self) -> str:
        """Return what the function said.

        Raises:
            StartError: it failed, or loading did.
        """
        return str(self._ask())

    def deliver(self) -> dict[str, Forked]:
        """Fork all programs and return them, now this process's own children. Empty where that cannot be."""
        if LIBC is None:
            return {}
        with _adopting():
            pids = self._ask()
            self._wait(self._process)
        return {name: Forked(pid) for name, pid in pids.items()}

    def _ask(self) -> Any:
        try:
            os.write(self._orders, b"\n")
            return json.loads(self._lines.readline())
        except (BrokenPipeError, ValueError):
            raise StartError(
                "The program could not be loaded or the database not be brought up to date. "
                + last_words(self._log, self._log.parent)
            ) from None

    def _live(self, orders: int) -> None:
        """The nursery's own life: two orders, two answers."""
        preload()
        os.read(orders, 1)
        child = fork(lambda: self._answer(self._prepare()), log=None, keep=(self._answers,))
        if self._wait(child) != 0:
            sys.exit(1)
        os.read(orders, 1)
        self._answer({name: self._bear(program).pid for name, program in self._programs.items()})

    def _bear(self, program: Program) -> Forked:
        return fork(program.run, log=program.log, keep=program.keep, heir=self._heir, name=program.name)

    def _answer(self, answer: object) -> None:
        os.write(self._answers, json.dumps(answer).encode() + b"\n")

    @staticmethod
    def _wait(process: Forked) -> int:
        while (code := process.poll()) is None:
            time.sleep(POLL_SECONDS)
        return code


@contextmanager
def _adopting() -> Iterator[None]:
    """Who loses its parent in the block becomes this process's child. Signals that ask to stop wait until it is over:
    otherwise nobody would know what was born."""
    assert LIBC is not None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ASKING_TO_STOP)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
