"""MCP servers that are programs: of staff and the operator's list only, noisy, and gone afterwards (threat T12)."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from memory.pool import orm
from tests.factories import UserFactory
from tools.base import ToolContext, ToolError
from tools.cancel import CancelToken
from tools.mcp import loop, offered, services, sessions
from tools.mcp.definitions import read
from tools.mcp.models import McpServer
from tools.mcp.tool import Anything, McpTool, ServerWentAway

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAM = str(Path(__file__).parents[2] / "mcp_program.py")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
def argv(notes: Path, settings: Settings) -> list[str]:
    command = [sys.executable, PROGRAM, str(notes)]
    settings.WAYMARK_MCP_COMMANDS = [command]
    return command


def connected(argv: list[str]) -> McpServer:
    server = services.check(services.add(UserFactory(is_staff=True), services.Named("noisy", argv=argv)))
    assert server.error == ""
    services.accept(server, [each.digest for each in read(server.seen)])
    return McpServer.objects.get(pk=server.pk)


def called(server: McpServer, name: str) -> str:
    found = offered.find(server.user_id, f"noisy__{name}")
    assert isinstance(found, McpTool)
    nobody: Any = None
    context = ToolContext(server.user_id, nobody, nobody, nobody, CancelToken())
    return found.run(Anything(), context).observation


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
    begun = time.monotonic()
    assert [called(server, "ok") for _ in range(3)] == ["fine"] * 3
    assert time.monotonic() - begun < 5
    assert words(notes) == ["start"]


def test_mcp_01_a_program_that_dies_is_started_once_more(argv: list[str], notes: Path) -> None:
    server = connected(argv)
    begun = time.monotonic()
    with pytest.raises(ServerWentAway):
        called(server, "die")
    assert time.monotonic() - begun < 2
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
    assert ours <= {"PATH", "LC_CTYPE"}
    assert "secret" not in str(seen)


def test_nothing_is_left_of_a_program(argv: list[str]) -> None:
    mark = called(connected(argv), "leave_child")
    assert becomes(lambda: running(mark))
    loop.submit(sessions.close_all()).result(10)
    assert becomes(lambda: not running(mark))


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
