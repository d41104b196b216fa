"""When the sandbox does not hold, nobody is offered commands, and the reason is told (threat T13)."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from memory.ids import new_id
from tools.base import Audience
from tools.cancel import CancelToken
from tools.registry import all_tools, tools_for
from tools.sandbox import box, run as running, seccomp, selftest
from tools.sandbox.folder import Folder
from tools.sandbox.run import run

pytestmark = pytest.mark.faults

NOBODY = 65_529


@pytest.fixture(autouse=True)
def forgotten(folder: Folder) -> Iterator[None]:
    selftest.forget()
    yield
    selftest.forget()


def is_offered() -> bool:
    return "run_cmd" in tools_for(Audience.CONVERSATION, frozenset())


def test_it_is_known_whether_it_holds_here() -> None:
    """On a machine with bubblewrap it does; elsewhere the reason names what is missing."""
    found = selftest.reason()
    assert is_offered() is (found == "")
    if box.missing_program():
        assert found == "Commands are withheld: /usr/bin/bwrap is not there (install bubblewrap)."
    else:
        assert found == ""


def test_without_bubblewrap_commands_are_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "PROGRAMS", ("/nowhere/bwrap",))
    assert selftest.reason() == "Commands are withheld: /nowhere/bwrap is not there (install bubblewrap)."
    assert not is_offered()
    assert "write_file" in tools_for(Audience.CONVERSATION, frozenset())


def test_a_sandbox_that_does_not_start_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    need_sandbox()
    monkeypatch.setattr(box, "_TEMPORARY", "much")
    assert selftest.reason().startswith("Commands are withheld: the sandbox could not be started: ")
    assert not is_offered()


def test_it_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    need_sandbox()
    assert selftest.renew() == ""
    monkeypatch.setattr(box, "PROGRAMS", ("/nowhere/bwrap",))
    assert selftest.renew() == ""
    settings.WAYMARK_SANDBOX_CHECK_MINUTES = 0
    assert "is not there" in selftest.renew()
    assert not is_offered()


HOLES = {
    "commands would have a network": ("--unshare-all", "--unshare-pid --unshare-uts --unshare-ipc"),
    "commands could make namespaces of their own": ("--disable-userns", "--unshare-uts"),
    "commands could not write into the workspace": ("--bind", "--ro-bind"),
    "commands could change the system": ("--ro-bind", "--bind"),
    "commands would read the worker's input": ("", ""),
    "the number of processes would not be limited": ("--nproc=64", "--nproc=63"),
    "commands would see more than the system": ("/dev/shm", "/more"),
}


@pytest.mark.parametrize("broken", HOLES)
def test_each_wall_that_is_taken_away_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes are tried themselves: without a wall one of them must succeed."""
    need_sandbox()
    old, new = HOLES[broken]
    whole, start = box.walled, subprocess.Popen

    def holed(*args: object, **kwargs: object) -> list[str]:
        words = whole(*args, **kwargs)  # type: ignore[arg-type]
        return [each for word in words for each in (new.split() if word == old else [word])]

    monkeypatch.setattr(running, "walled", holed)
    monkeypatch.setattr(seccomp, "_code", lambda machine: None)  # two walls stand before namespaces
    monkeypatch.setattr(selftest, "_NUMBERS", {})
    if not old:
        monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: start(*a, **k | {"stdin": subprocess.PIPE}))
    assert selftest.tried() == f"Commands are withheld: {broken}."


def test_devices_beside_which_something_can_be_put_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    need_sandbox()
    whole = box._inner

    def holed(*args: object) -> list[str]:
        words = whole(*args)  # type: ignore[arg-type]
        at = words.index("--remount-ro")
        assert words[at + 1] == "/dev"
        return words[:at] + words[at + 2 :]

    monkeypatch.setattr(box, "_inner", holed)
    assert selftest.tried() == "Commands are withheld: commands could fill the memory by /dev."


def test_a_filter_without_effect_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    need_sandbox()
    monkeypatch.setattr(seccomp, "_code", lambda machine: None)
    assert selftest.tried() == "Commands are withheld: system calls would not be refused."


def test_a_folder_that_is_given_is_seen_and_read_only(folder: Folder, settings: Settings, tmp_path: object) -> None:
    need_sandbox()
    settings.WAYMARK_COMMAND_FOLDERS = ["/opt"]
    assert selftest.tried() == ""
    ended = run(folder, ["/bin/sh", "-c", "ls -d /opt && touch /opt/x"], CancelToken(), 20)
    assert ended.output.text().startswith("/opt")
    assert ended.code != 0


def test_agents_are_told_what_programs_there_are(settings: Settings, tmp_path: Path) -> None:
    """As seen from inside, where what lies elsewhere is not there."""
    need_sandbox()
    programs = tmp_path / "own" / "bin"
    programs.mkdir(parents=True)
    for path in (programs / "pytest", tmp_path / "node"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (programs / "node").symlink_to(tmp_path / "node")
    settings.WAYMARK_COMMAND_FOLDERS = [str(programs.parent)]
    assert selftest.reason() == ""
    here, lacking = re.findall(r"(?:Here are|Not here): ([\w, ]+)\.", all_tools()["run_cmd"].spec().description)
    assert {*here.split(", "), *lacking.split(", ")} == {*selftest.PROGRAMS}
    assert "pytest" in here
    assert "node" in lacking or Path("/usr/bin/node").exists()


def test_it_holds_for_a_worker_that_is_not_root(settings: Settings) -> None:
    """Where the tests are root, a child of theirs becomes somebody else first."""
    need_sandbox()
    if os.geteuid() != 0:
        assert selftest.tried() == ""
        return
    with tempfile.TemporaryDirectory() as place:
        os.chown(place, NOBODY, NOBODY)
        settings.WAYMARK_WORKSPACES = place
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                folder = Folder(new_id())
                folder.make()
                ended = run(folder, ["/usr/bin/id", "-u"], CancelToken(), 20)
                os.write(tell, f"{selftest.tried()}|{ended.output.text().strip()}|{ended.clean}".encode())
            finally:
                os._exit(0)
        os.close(tell)
        with open(told) as answer:
            assert answer.read() == f"|{NOBODY}|True"
        os.waitpid(child, 0)


def need_sandbox() -> None:
    if box.missing_program():
        pytest.skip("no bubblewrap here")
