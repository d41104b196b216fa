"""`bin/up` on a disk that runs full: a small one of its own, made for the test."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.running import START_SECONDS, open_folder, status_of
from tests.config.test_up import READY, up

SIZE = "400m"

pytestmark = [pytest.mark.programs, pytest.mark.faults]


@pytest.fixture
def small() -> Iterator[Path]:
    with open_folder() as folder:
        mounted = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(mounted, check=False, capture_output=True).returncode:
            pytest.skip("no disk can be made here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that leaves no byte free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while file.write(bytes(1_000_000)):
            pass
    return filler


def test_a_full_disk_is_named_and_waited_for(small: Path) -> None:
    """Nobody need start Waymark again, nobody is sent to a backup, and a start says the same."""
    program = up(small)
    ready = f"{program.wait_for(READY)}/readyz"
    filler = fill(small)
    program.child("bin/postgres").kill()
    program.wait_for(f"PostgreSQL ended with code 1. The disk that holds {small}/data/pg is full. Free some space")
    assert status_of(ready) == 503
    filler.unlink()
    deadline = time.monotonic() + START_SECONDS
    while status_of(ready) != 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert status_of(ready) == 200
    program.process.terminate()
    assert program.end() == 0
    assert "HINT" not in program.output
    fill(small)
    program = up(small)
    assert program.end() == 1
    assert f"The disk that holds {small}/data is full. Free some space; nothing is lost" in program.output
    assert "Traceback" not in program.output


def test_a_first_start_on_a_full_disk_says_so(small: Path) -> None:
    fill(small)
    program = up(small)
    assert program.end() == 1
    assert f"The disk that holds {small}/data is full" in program.output
    assert "Traceback" not in program.output
