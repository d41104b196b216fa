"""MCP servers that are programs: of staff and the operator's list only, noisy, and gone afterwards (threat T12)."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from memory.pool import orm
from tests.factories import UserFactory
from tests.servers import SETTINGS
from tools.base import Audience, ToolContext, ToolError
from tools.cancel import CancelToken
from tools.mcp import complaints, loop, offered, services, sessions
from tools.mcp.definitions import read
from tools.mcp.models import McpServer
from tools.mcp.program_list import programs_from
from tools.mcp.programs import room_of
from tools.mcp.tool import Anything, McpTool, ServerWentAway
from tools.registry import tools_for
from tools.sandbox import box, selftest
from tools.sandbox.box import walled

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAM = str(Path(__file__).parents[2] / "mcp_program.py")


@pytest.fixture(autouse=True)
def withheld() -> None:
    """Without bubblewrap the reason is tested instead (test_withheld). Where it is there, nothing is skipped."""
    if missing := box.missing_program():
        pytest.skip(f"{missing} is not there")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A file in a folder that whoever programs run as may write to."""
    tmp_path.chmod(0o777)
    return tmp_path / "notes"


@pytest.fixture
def argv(notes: Path, settings: Settings) -> list[str]:
    command = [sys.executable, PROGRAM, str(notes)]
    needs: dict[str, Any] = {"read": [PROGRAM], "write": [str(notes.parent)]}
    listed = [{"command": each, **needs} for each in (command, [*command, "quiet"])]
    settings.WAYMARK_MCP_COMMANDS = programs_from(json.dumps(listed))
    return command


def lists(settings: Settings, command: list[str], **more: Any) -> None:
    """The operator lists a program."""
    settings.WAYMARK_MCP_COMMANDS = programs_from(json.dumps([{"command": command, **more}]))


def connected(argv: list[str]) -> McpServer:
    server = services.check(services.add(UserFactory(is_staff=True), services.Named("noisy", argv=argv)))
    assert server.error == ""
    services.accept(server, [each.digest for each in read(server.seen)])
    return McpServer.objects.get(pk=server.pk)


def called(server: McpServer, name: str, **given: Any) -> str:
    found = offered.find(server.user_id, f"noisy__{name}")
    assert isinstance(found, McpTool)
    nobody: Any = None
    context = ToolContext(server.user_id, nobody, nobody, nobody, CancelToken())
    return found.run(Anything.model_validate(given), context).observation


def three_times(server: McpServer, name: str) -> None:
    """At the same time."""

    def once() -> None:
        with orm():
            called(server, name)

    threads = [threading.Thread(target=once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def running(mark: str) -> bool:
    return any(mark in (each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))


def becomes(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until and not true():
        time.sleep(0.05)
    return true()


def words(notes: Path) -> list[str]:
    return notes.read_text().split() if notes.exists() else []


def test_mcp_02_noise_is_passed_over_and_complaints_never_block(argv: list[str], notes: Path) -> None:
    server = connected(argv)
    assert [called(server, "ok") for _ in range(3)] == ["fine"] * 3
    assert words(notes) == ["start"]


def test_mcp_01_a_program_that_dies_is_started_once_more(argv: list[str], notes: Path) -> None:
    server = connected(argv)
    with pytest.raises(ServerWentAway):
        called(server, "die")
    assert called(server, "ok") == "fine"
    three_times(server, "ok")
    assert words(notes) == ["start", "die", "start"]


def test_a_program_sees_nothing_of_our_environment_and_processes(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "secret")
    seen = json.loads(called(connected(argv), "env"))
    assert seen["cwd"] == seen["HOME"]
    assert seen["processes"] <= 2
    ours = {name for name, value in os.environ.items() if value and seen.get(name) == value}
    assert ours <= {"PATH", "LC_CTYPE", *box._ENVIRONMENT}
    assert "secret" not in str(seen)


def test_nothing_is_left_of_a_program(argv: list[str]) -> None:
    mark = called(connected(argv), "leave_child")
    assert becomes(lambda: running(mark))
    loop.submit(sessions.close_all()).result(10)
    assert becomes(lambda: not running(mark))


@pytest.fixture
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that everybody on this machine may read and write to."""
    folder = tmp_path_factory.mktemp("secrets")
    folder.chmod(0o777)
    (folder / "note.txt").write_text("SECRET")
    (folder / "note.txt").chmod(0o666)
    return folder


@pytest.fixture
def port() -> Iterator[int]:
    """Of something that listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def ways(secrets: Path, port: int) -> dict[str, tuple[str, str]]:
    memory, vsock = {"x86_64": ("319", "41"), "aarch64": ("279", "198")}.get(os.uname().machine, ("", ""))
    calls = {"memory of no process": f"{memory} 0 0", "the machine below": f"{vsock} 40 1"} if memory else {}
    return {
        "a file": ("read", f"{secrets}/note.txt"),
        "a file through itself": ("read", f"/proc/self/root{secrets}/note.txt"),
        "a file through the first process": ("read", f"/proc/1/root{secrets}/note.txt"),
        "its neighbours": ("read", str(Path(__file__).parents[2] / "conftest.py")),
        "users": ("read", "/etc/passwd"),
        "our keys": ("read", f"/proc/{os.getpid()}/environ"),
        "a change of a file": ("write", f"{secrets}/note.txt"),
        "a change of itself": ("write", PROGRAM),
        "a change of its interpreter": ("write", sys.executable),
        "a change of the system": ("write", "/usr/waymark"),
        "this machine": ("connect", str(port)),
        **{name: ("call", where) for name, where in calls.items()},
    }


def test_t12_a_program_has_nothing_but_what_it_was_given(argv: list[str], secrets: Path, port: int) -> None:
    """All of it is there for whoever is outside."""
    server = connected([*argv, "quiet"])
    found = {name: called(server, "try", what=what, where=where) for name, (what, where) in ways(secrets, port).items()}
    assert {name: said for name, said in found.items() if not said.startswith("refused")} == {}
    assert (secrets / "note.txt").read_text() == "SECRET"


FILES = {"a file", "a file through itself", "a file through the first process"}


@pytest.mark.parametrize(
    ("key", "opens"), [("read", FILES), ("write", {*FILES, "a change of a file"}), ("network", {"this machine"})]
)
def test_t12_a_program_has_what_its_operator_says_and_no_more(
    argv: list[str], secrets: Path, port: int, settings: Settings, notes: Path, key: str, opens: set[str]
) -> None:
    more: dict[str, Any] = {"read": [PROGRAM], "write": [str(notes.parent)], "network": False}
    more[key] = more[key] + [str(secrets)] if key != "network" else True
    lists(settings, [*argv, "quiet"], **more)
    server = connected([*argv, "quiet"])
    found = {name: called(server, "try", what=what, where=where) for name, (what, where) in ways(secrets, port).items()}
    assert {name for name, said in found.items() if not said.startswith("refused")} == opens


def test_t12_what_is_given_to_it_is_seen_by_it_alone(argv: list[str], settings: Settings, notes: Path) -> None:
    """Its variables stand in no list of processes, and not in what it complains of."""
    secret = "canary-4711\nsecond-line-of-it"
    lists(settings, [*argv, "quiet"], read=[PROGRAM], write=[str(notes.parent)], environment={"TOKEN": secret})
    server = connected([*argv, "quiet"])
    assert json.loads(called(server, "env"))["TOKEN"] == f"canary-4711\n{'*' * 17}"  # a short one may be any word
    shown = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    assert not [line for line in shown if "canary-4711" in line]
    called(
        server, "say", text=f"\x1b[31mI have {secret}!\n" + "filler\n" * 2_000 + "the token is canary-4711\nthe last\n"
    )
    called(server, "say", text="no whole line: canary-")
    loop.submit(sessions.close_all()).result(10)
    server.refresh_from_db()
    assert server.said.endswith("the token is ***********\nthe last\nno whole line: canary-")
    assert len(server.said) <= complaints.KEPT
    assert server.said_at is not None


def test_mcp_02_complaints_are_kept_while_it_runs(argv: list[str]) -> None:
    server = connected([*argv, "quiet"])
    called(server, "say", text="it is dark\n")

    def is_kept() -> bool:
        return McpServer.objects.values_list("said", flat=True).get(pk=server.pk) == "it is dark"

    assert becomes(is_kept)


def test_mcp_02_what_it_says_when_it_cannot_start_is_kept(settings: Settings, notes: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such setting: colour')"]
    lists(settings, command)
    server = services.check(services.add(UserFactory(is_staff=True), services.Named("noisy", argv=command)))
    assert "could not be reached" in server.error
    server.refresh_from_db()
    assert server.said == "no such setting: colour"


def test_an_answer_without_an_end_costs_its_connection_only(argv: list[str], settings: Settings, notes: Path) -> None:
    settings.WAYMARK_MCP_BYTES = 100_000
    server = connected([*argv, "quiet"])
    with pytest.raises(ServerWentAway):
        called(server, "long", size=1_000_000)
    assert called(server, "ok") == "fine"
    assert words(notes) == ["start", "start"]


def test_a_program_that_takes_too_much_memory_is_ended_and_says_so(argv: list[str], settings: Settings) -> None:
    settings.WAYMARK_COMMAND_MEMORY = 200_000_000
    server = connected([*argv, "quiet"])
    with pytest.raises(ServerWentAway):
        called(server, "grow", size=300_000_000)
    assert called(server, "ok") == "fine"
    server.refresh_from_db()
    assert "more than 200,000,000 bytes of memory" in server.said


def test_where_the_sandbox_does_not_hold_nothing_is_started_or_offered(
    argv: list[str], notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = UserFactory(is_staff=True)
    server = services.check(services.add(user, services.Named("held", argv=argv)))
    services.accept(server, [each.digest for each in read(server.seen)])
    assert "held__ok" in tools_for(Audience.CONVERSATION, frozenset(), user_id=user.pk)
    loop.submit(sessions.close_all()).result(10)
    monkeypatch.setattr(selftest, "_reason", None)
    monkeypatch.setattr(box, "PROGRAMS", ("/nowhere/bwrap",))
    server = services.check(server)
    assert "Programs are withheld" in server.error
    assert "/nowhere/bwrap is not there (install bubblewrap)" in server.error
    assert words(notes) == ["start"]
    assert "held__ok" not in tools_for(Audience.CONVERSATION, frozenset(), user_id=user.pk)


@pytest.mark.parametrize("change", ["nobody", "another word", "a word less", "a shell"])
def test_programs_are_started_by_staff_and_word_for_word(argv: list[str], notes: Path, change: str) -> None:
    user: User = UserFactory(is_staff=change != "nobody")
    wanted = {"another word": [*argv, "-x"], "a word less": argv[:-1], "a shell": ["/bin/sh", "-c", " ".join(argv)]}
    with pytest.raises(services.NotTaken):
        services.add(user, services.Named("noisy", argv=wanted.get(change, argv)))
    assert words(notes) == []


@pytest.mark.parametrize("gone", ["from the list", "from staff"])
def test_what_may_not_be_started_any_more_is_not(argv: list[str], notes: Path, settings: Settings, gone: str) -> None:
    server = connected(argv)
    loop.submit(sessions.close_all()).result(10)
    if gone == "from the list":
        settings.WAYMARK_MCP_COMMANDS = []
    else:
        User.objects.filter(pk=server.user_id).update(is_staff=False)
    with pytest.raises(ToolError, match="may not be started"):
        called(server, "ok")
    server = McpServer.objects.select_related("user").get(pk=server.pk)
    assert "may not be started" in services.check(server).error
    assert words(notes) == ["start"]


def test_t12_the_room_is_the_same_where_the_worker_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tests are root, somebody else starts it."""
    monkeypatch.setattr(box, "is_root", lambda: False)
    somebody: dict[str, Any] = {"user": 65_529, "group": 65_529, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as place:
        for name in ("read", "write", "other"):
            (Path(place) / name).mkdir()
            (Path(place) / name / "a.txt").write_text(name)
            (Path(place) / name).chmod(0o777)
        Path(place).chmod(0o755)
        script = (
            f"cd {place}; ls; cat read/a.txt; touch read/b; cat other/a.txt; echo $TOKEN > write/b.txt; pwd -P; ls ~"
        )
        listed = {"command": ["sh", "-c", script], "read": [f"{place}/read"], "write": [f"{place}/write"]}
        (program,) = programs_from(json.dumps([{**listed, "environment": {"TOKEN": "4711", "HOME": "/dev"}}]))
        ended = subprocess.run(
            walled(room_of(program), program.command, seccomp=None),
            **somebody,
            env=program.environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.stdout.split()[:4] == ["read", "write", f"read{place}", "core"], ended
        assert "other/a.txt: No such file" in ended.stderr
        assert "read/b': Read-only file system" in ended.stderr
        assert (Path(place) / "write" / "b.txt").read_text() == "4711\n"


STARTS = """
import asyncio, sys
import django
django.setup()
from tools.mcp import stdio

async def main():
    async with stdio.started(tuple(sys.argv[1:]), print):
        print("started", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_t12_a_worker_that_is_killed_takes_its_programs_along() -> None:
    mark = f"{500_000_000 + os.getpid()}"
    command = ["sleep", mark]
    environment = {**os.environ, **SETTINGS, "WAYMARK_MCP_COMMANDS": json.dumps([command])}
    with subprocess.Popen([sys.executable, "-c", STARTS, *command], env=environment, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"started\n"
        assert becomes(lambda: running(mark))
        worker.kill()
    assert becomes(lambda: not running(mark))
