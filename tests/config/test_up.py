"""`bin/up` as a person at a terminal sees it."""

import contextlib
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.config.running import Program, left_after, open_folder, status_of

pytestmark = pytest.mark.programs

OWNER = {"WAYMARK_OWNER_EMAIL": "owner@example.com", "WAYMARK_OWNER_PASSWORD": "a sentence of some words"}
READY = r"Open +(http://\S+)[\s\S]*Stop +Ctrl-C"


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as path:
        yield path


@pytest.fixture(scope="module")
def running() -> Iterator[Program]:
    """One that several tests look at."""
    with open_folder() as path:
        program = up(path, **OWNER)
        program.wait_for(READY)
        yield program
        program.process.send_signal(signal.SIGINT)
        assert program.end() == 0


def up(folder: Path, *arguments: str, **changes: str) -> Program:
    """Start on a free port."""
    changes = {"WAYMARK_SYSTEM_DIR": str(folder / "system"), **changes}
    return Program("manage.py", "up", "--data", str(folder / "data"), "--port", "0", *arguments, **changes)


def test_a_first_start_shows_a_link_and_a_second_one_finds_the_data_again(folder: Path) -> None:
    first = up(folder)
    address = first.wait_for(READY)
    assert status_of(f"{address}/setup/made-up/") == 410
    key = (folder / "data" / "secret_key").read_text()
    family = first.family()
    first.process.send_signal(signal.SIGINT)
    assert first.end() == 0
    assert left_after(family, seconds=0) == []
    assert "Stopped." in first.output
    second = up(folder)
    address = second.wait_for(READY)
    link = first.wait_for(r"Sign in +\S+(/setup/\S+)")
    assert status_of(address + link) == 200
    assert (folder / "data" / "secret_key").read_text() == key
    second.process.send_signal(signal.SIGTERM)
    assert second.end() == 0


def test_the_owner_is_made_from_the_environment(running: Program) -> None:
    assert running.wait_for(r"Sign in .* as (\S+)") == OWNER["WAYMARK_OWNER_EMAIL"]
    assert status_of(running.wait_for(READY) + "/accounts/login/") == 200


def test_an_owner_who_cannot_be_made_ends_the_start_with_the_reason(folder: Path) -> None:
    program = up(folder, **OWNER | {"WAYMARK_OWNER_PASSWORD": "password"})
    assert program.end() == 1
    assert "This password is too common." in program.output


def test_a_taken_port_is_said_before_anything_is_started(folder: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        program = up(folder, "--port", str(taken.getsockname()[1]))
        assert program.end() == 1
    assert "Stop what uses it, or choose another with --port" in program.output
    assert not (folder / "data" / "pg").exists()


def test_lost_field_keys_are_said_before_anything_is_started(folder: Path) -> None:
    (folder / "data" / "pg").mkdir(parents=True)
    program = up(folder)
    assert program.end() == 1
    assert f"{folder}/data/field_keys is missing beside the database" in program.output
    assert not list((folder / "data" / "pg").iterdir())


def test_a_second_copy_on_the_same_data_is_refused(running: Program) -> None:
    data = running.wait_for(r"Data +(\S+)")
    second = Program("manage.py", "up", "--data", data, "--port", "0")
    assert second.end() == 1
    assert f"already running on {data} (process {running.process.pid})" in second.output


@pytest.mark.faults
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_a_body_that_is_too_long_is_refused_before_it_is_read(running: Program, declared: bool) -> None:
    address = running.wait_for(READY)
    host, port = address.removeprefix("http://").split(":")
    head = b"POST /accounts/login/ HTTP/1.1\r\nHost: localhost\r\n"
    with closing(socket.create_connection((host, int(port)), timeout=10)) as client:
        if declared:
            client.sendall(head + b"Content-Length: 200000000\r\n\r\n")
        else:
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):  # it may be cut off while it still sends
                for _ in range(40):
                    client.sendall(b"19000\r\n" + b"x" * 0x19000 + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413")
    assert status_of(f"{address}/healthz") == 200


def test_what_is_killed_is_started_again(running: Program) -> None:
    address = running.wait_for(READY)
    for name, shown in (("bin/postgres", "PostgreSQL"), ("valkey-server", "Valkey")):
        running.child(name).kill()
        running.wait_for(f"{shown} was killed by signal 9")
        running.wait_for(f"{shown} started again")
        kept = (Path(running.wait_for(r"Data +(\S+)")) / "logs" / "up.log").read_text()
        assert re.search(rf"^20\S+T\S+Z  {shown} was killed by signal 9$", kept, re.MULTILINE)
    web = _web_process(running, address)
    web.kill()
    assert left_after([web]) == []  # what it takes while it dies is lost
    assert status_of(f"{address}/healthz") == 200
    assert status_of(f"{address}/accounts/login/") == 200


@pytest.mark.faults
@pytest.mark.parametrize(("name", "part"), [("bin/postgres", "Database"), ("valkey-server", "Redis")])
def test_a_server_that_hangs_is_told_of_by_whoever_is_asked(running: Program, name: str, part: str) -> None:
    address, data = running.wait_for(READY), running.wait_for(r"Data +(\S+)")
    server = running.child(name)
    server.suspend()
    try:
        assert status_of(f"{address}/readyz") == 503
        command = Program("manage.py", "health", WAYMARK_DATA=data)
        assert command.end() == 1
    finally:
        server.resume()
    assert f"{part}: does not answer" in command.output


@pytest.mark.faults
def test_kill_9_leaves_no_orphans(folder: Path) -> None:
    program = up(folder, "--workers", "2")
    program.wait_for(READY)
    family = program.family()
    program.kill()
    assert len(family) >= 6
    assert left_after(family) == []


@pytest.mark.skipif("DATABASE_URL" not in os.environ, reason="needs servers to point to")
def test_servers_named_by_the_environment_are_used_and_none_is_embedded(folder: Path) -> None:
    program = up(folder, DATABASE_URL=os.environ["DATABASE_URL"], REDIS_URL=os.environ["REDIS_URL"])
    program.wait_for(READY)
    names = [process.name() for process in program.family()]
    program.process.send_signal(signal.SIGINT)
    assert program.end() == 0
    assert not any("postgres" in name or "valkey" in name for name in names)


def _web_process(program: Program, address: str) -> psutil.Process:
    port = int(address.rsplit(":", 1)[1])
    for process in psutil.Process(program.process.pid).children():
        if port in [entry.laddr.port for entry in process.net_connections(kind="inet")]:
            return process
    raise AssertionError("no web process")
