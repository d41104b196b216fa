"""Children that are forked by one process and belong to another."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from config import nursery
from config.nursery import Nursery, Program
from tests.config.running import Program as Run, left_after
from tests.processes import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can be adopted"),
    # The test process has threads; the real parent has none (test_children.py).
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]
# A supervisor that stands still as soon as it has a child; it says who that is.
HOLDER = """
import sys, time
from functools import partial
from pathlib import Path
from config import nursery
nursery.preload = lambda: None
folder = Path(sys.argv[1])
sleeper = nursery.Program("sleeper", partial(time.sleep, 60), folder / "sleeper.log")
with nursery.Nursery(lambda: "ready", {"a": sleeper, "b": sleeper}, folder / "log") as it:
    print(it.prepare(), flush=True)
    if sys.argv[2] == "delivered":
        it.deliver()
    print("now", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def nothing_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "preload", lambda: None)


def test_what_is_born_belongs_to_the_parent_and_begins_when_the_nursery_is_gone(tmp_path: Path) -> None:
    output = tmp_path / "output"
    program = Program("child", _say_whose_child, output)
    with Nursery(lambda: "how to sign in", {"one": program, "two": program}, tmp_path / "log") as it:
        assert it.prepare() == "how to sign in"
        born = it.deliver()
    try:
        assert list(born) == ["one", "two"]
        deadline = time.monotonic() + 30
        while len(output.read_text().split() if output.exists() else []) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert output.read_text().split() == [str(os.getpid())] * 2
    finally:
        for child in born.values():
            child.send_signal(signal.SIGKILL)
    while None in (codes := [child.poll() for child in born.values()]):
        time.sleep(0.02)
    assert codes == [-signal.SIGKILL] * 2


def test_leaving_early_ends_the_nursery(tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    with Nursery(lambda: "", {}, tmp_path / "log"):
        (process,) = set(psutil.Process().children()) - before
    assert left_after([process], seconds=0) == []


@pytest.mark.faults
@pytest.mark.parametrize("when", ["prepared", "delivered"])
def test_kill_9_of_the_parent_ends_all_at_any_time(tmp_path: Path, when: str) -> None:
    run = Run("-c", HOLDER, str(tmp_path), when)
    run.wait_for("now")
    left = 1 if when == "prepared" else 2  # the child that prepares ends just after its answer
    wait_until(lambda: len(run.family()) == left, 10)
    family = run.family()
    run.kill()
    assert left_after(family) == []


def _say_whose_child() -> None:
    os.write(1, f"{os.getppid()}\n".encode())
    time.sleep(60)
