"""Keeping processes alive, with processes that only sleep."""

import contextlib
import gc
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from config.children import SIGNALS, UNFIT, Forked, fork
from config.console import Console
from config.embedded import StartError
from config.supervisor import Interrupted, Service, Supervisor

# The test process has threads; the real parent has none (test_children.py).
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def supervisor(console: Console) -> Iterator[Supervisor]:
    before = {sig: signal.getsignal(sig) for sig in SIGNALS}
    gc.collect()  # no child may finalise what belongs to threads that it does not have
    gc.freeze()
    yield Supervisor(console)
    gc.unfreeze()
    signal.set_wakeup_fd(-1)
    for sig, handler in before.items():
        signal.signal(sig, handler)


def sleeper(log: Path, *, stubborn: bool = False) -> Forked:
    """A child that writes down the signal that ends it; a stubborn one goes on."""

    def run() -> None:
        def note(sig: int, _: object) -> None:
            with log.open("a") as file:
                file.write(f"{log.name} {sig} {time.monotonic()}\n")
            if not stubborn:
                os._exit(0)

        signal.signal(signal.SIGTERM, note)
        log.touch()
        time.sleep(60)

    child = fork(run, log=None)
    while not log.exists():
        time.sleep(0.005)
    return child


def test_services_are_stopped_in_order(supervisor: Supervisor, tmp_path: Path) -> None:
    with supervisor:
        for name, order in (("server", 1), ("user", 0)):
            log = tmp_path / name
            supervisor.add(Service(name, lambda log=log: sleeper(log), order, None))  # type: ignore[misc]
    times = [float((tmp_path / name).read_text().split()[2]) for name in ("user", "server")]
    assert times == sorted(times)


def test_who_does_not_stop_in_time_is_ended(supervisor: Supervisor, tmp_path: Path) -> None:
    with supervisor:
        service = Service("stubborn", lambda: sleeper(tmp_path / "log", stubborn=True), 0, None, stop_seconds=0.2)
        child = supervisor.add(service)
    assert child.poll() == -signal.SIGKILL


def test_for_whom_is_waited_and_how_long_is_said_once(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("config.supervisor.QUIET_SECONDS", 0)
    with supervisor:
        for name in ("Worker-1", "Worker-2"):
            log = tmp_path / name
            start = partial(sleeper, log, stubborn=True)
            supervisor.add(Service(name, start, 0, None, stop_seconds=1))
    words = "Worker-1 and Worker-2 still at work; waiting 1 s at most. Ctrl-C again does not wait."
    assert capsys.readouterr().out.count(words) == 1


def test_another_ctrl_c_does_not_wait(supervisor: Supervisor, tmp_path: Path) -> None:
    began = time.monotonic()
    with supervisor:
        supervisor.add(Service("stubborn", lambda: sleeper(tmp_path / "log", stubborn=True), 0, None))
        supervisor.signals.calm()
        fork(lambda: _ctrl_c_soon(os.getppid()), log=None)
    assert time.monotonic() - began < 5


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.supervisor.LONGEST_WAIT", 0.01)
    monkeypatch.setattr("config.supervisor.PATIENCE_SECONDS", 0.05)


@pytest.mark.usefixtures("impatient")
def test_what_dies_again_and_again_is_given_up(supervisor: Supervisor) -> None:
    starts = []

    def start() -> Forked:
        starts.append(1)
        return fork(lambda: os._exit(3), log=None)

    with pytest.raises(StartError) as caught, supervisor:
        supervisor.add(Service("Broken", start, 0, None))
        supervisor.run()
    assert str(caught.value) == f"Broken ended with code 3, {len(starts)} times in a row."
    assert len(starts) >= 2


@pytest.mark.usefixtures("impatient")
def test_who_is_killed_again_and_again_has_no_last_words(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("worker started")

    def start() -> Forked:
        return fork(lambda: os.kill(os.getpid(), signal.SIGKILL), log=None)

    with pytest.raises(StartError, match=r"^Worker was killed by signal 9, \d+ times in a row\.$"), supervisor:
        supervisor.add(Service("Worker", start, 0, tmp_path / "log"))
        supervisor.run()


@pytest.mark.usefixtures("impatient")
def test_a_full_disk_is_named_and_waited_for(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it has said besides: PostgreSQL advises to restore a backup."""
    log, starts = tmp_path / "log", []

    def start() -> Forked:
        starts.append(1)
        time.sleep(0.02)
        if len(starts) > 10:
            return fork(lambda: _ctrl_c_soon(os.getppid(), 0), log=None)
        log.write_text(
            "PANIC:  could not write to file: No space left on device\n"
            "HINT:  If you are sure there is no data corruption, use the last backup to recover.\n"
        )
        return fork(lambda: os._exit(1), log=None)

    with supervisor:
        supervisor.add(Service("PostgreSQL", start, 0, log, files=tmp_path))
        supervisor.run()
    told = capsys.readouterr().out
    assert f"PostgreSQL ended with code 1. The disk that holds {tmp_path} is full. Free some space" in told
    assert "HINT" not in told
    assert "PostgreSQL started again" in told
    assert len(starts) == 11


def test_who_does_not_fit_the_database_is_not_started_again(
    supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    starts = []

    def start() -> Forked:
        starts.append(1)
        return fork(lambda: os._exit(UNFIT), log=None)

    with supervisor:
        supervisor.add(Service("Worker", start, 0, None))
        fork(lambda: _ctrl_c_soon(os.getppid(), 2), log=None)
        supervisor.run()
    assert len(starts) == 1
    assert "Worker does not start: the program was changed while Waymark runs" in capsys.readouterr().out


def test_what_happens_is_kept_with_its_time(supervisor: Supervisor, console: Console, tmp_path: Path) -> None:
    console.log = tmp_path / "up.log"
    with supervisor:
        supervisor.add(Service("Worker", lambda: sleeper(tmp_path / "log"), 0, None))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ  Stopping …\n", console.log.read_text())


def test_a_console_that_cannot_be_written_to_ends_nothing(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a file on a full disk."""
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        console.log = Path("/dev/full")
        console.say("Stopping …")
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


def test_ctrl_c_while_starting_ends_the_start(supervisor: Supervisor) -> None:
    with pytest.raises(Interrupted), supervisor:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def _ctrl_c_soon(pid: int, seconds: float = 0.5) -> None:
    time.sleep(seconds)
    os.kill(pid, signal.SIGINT)
