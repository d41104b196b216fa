"""Processes under test, as the tests hold them: forked by a nursery, known by a descriptor, ended by force."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import orjson

from tests.servers import SETTINGS

ROOT = Path(__file__).resolve().parent.parent


class Child:
    """A process that a nursery has forked."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid, self.name = pid, name
        self._descriptor: int | None = os.pidfd_open(pid)

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        """As nobody can prepare for, and wait until it is gone."""
        self.send(signal.SIGKILL)
        assert self.is_dead(30)

    def is_frozen(self) -> bool:
        """Whether it has been stopped by a signal and not told to go on."""
        return not self.is_dead() and Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def is_dead(self, seconds: float = 0) -> bool:
        """Whether it ends within that time. What is known of a dead one is let go: a whole catalogue has thousands."""
        if self._descriptor is not None:
            poll = select.poll()  # `select.select` refuses descriptors from 1,024 on
            poll.register(self._descriptor, select.POLLIN)
            if poll.poll(seconds * 1000):
                os.close(self._descriptor)
                self._descriptor = None
        return self._descriptor is None


def said(folder: Path, name: str) -> str:
    """What a process has said; nothing, when it was killed before it could."""
    path = _log(folder, name)
    return path.read_text() if path.exists() else ""


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"


class Nursery:
    """See tests/nursery.py."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.nursery"],
            cwd=ROOT,
            env=os.environ | SETTINGS | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(self, do: str, name: str, point: str = "", args: Collection[str] = ()) -> tuple[Child, int]:
        """Returns the child and the port that it serves, if any."""
        order = {"do": do, "log": str(_log(self._folder, name)), "name": name, "point": point, "args": list(args)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(orjson.dumps(order) + b"\n")
        self._process.stdin.flush()
        born = orjson.loads(self._process.stdout.readline())
        return Child(born["pid"], name), born["port"]

    def log(self, name: str) -> str:
        return said(self._folder, name)

    def close(self) -> None:
        assert self._process.stdin
        with self._process:
            self._process.stdin.close()
            self._process.wait(30)
