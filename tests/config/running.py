"""Processes that the tests of this folder start and watch."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
"""Until then it has started or never will: a machine that others keep busy takes more than a minute."""


@contextmanager
def open_folder() -> Iterator[Path]:
    """An empty folder that other users may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="waymark-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what tests/servers.py put there."""
    ours = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    rest = {name: value for name, value in os.environ.items() if name not in ours and not name.startswith("WAYMARK_")}
    return rest | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | changes


class Program:
    """A child whose output is read as it comes."""

    def __init__(self, *arguments: str, **changes: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "\n".join(self._lines)

    def wait_for(self, pattern: str) -> str:
        """The first group of the first match in the output; fails when the program ends or is silent."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            found = re.search(pattern, self.output, re.MULTILINE)
            if found:
                return found.group(1) if found.groups() else found.group()
            if self.process.poll() is not None and not self._reader.is_alive():
                break
            time.sleep(0.02)
        raise AssertionError(f"no {pattern!r} in:\n{self.output}")

    def end(self) -> int:
        """Wait until it has ended and all was read; returns the exit code."""
        code = self.process.wait(timeout=START_SECONDS)
        self._reader.join(timeout=5)
        return code

    def family(self) -> list[psutil.Process]:
        """All processes below this one that run."""
        return [child for child in psutil.Process(self.process.pid).children(recursive=True) if _runs(child)]

    def child(self, name: str) -> psutil.Process:
        """The direct child whose command line has that word."""
        for process in psutil.Process(self.process.pid).children():
            if name in " ".join(process.cmdline()):
                return process
        raise AssertionError(f"no child {name}")

    def kill(self) -> None:
        """As a test's last resort: with kill -9 its children end as well."""
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line.rstrip())


def left_after(processes: list[psutil.Process], seconds: float = 60.0) -> list[psutil.Process]:
    """Those that still run when all should long have ended. Zombies do not run: nobody may be there to reap them."""
    deadline = time.monotonic() + seconds
    while (left := [process for process in processes if _runs(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def status_of(url: str) -> int:
    """The HTTP status, 0 when there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
