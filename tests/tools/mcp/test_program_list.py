"""What the operator may say of programs, and what of it is refused at the start (threat T12)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from tools.checks import check_programs
from tools.mcp.program_list import Program, programs_from
from tools.mcp.programs import own_places, room_of


def test_words_alone_are_a_program_with_nothing_more() -> None:
    (plain, same) = programs_from('[["/usr/bin/a", "-x", ""], {"command": ["a"]}]')
    assert plain == Program(command=["/usr/bin/a", "-x", ""])
    room = room_of(same)
    assert (room.reads, room.writes, room.network, room.environment) == ({}, {}, False, {})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("nonsense", "Invalid JSON"),
        ('{"command": ["a"]}', "valid array"),
        ('["a"]', "0: "),
        ("[[]]", "0.command: "),
        ("[[1]]", "0.command.0: "),
        ('[[""]]', "absolute path"),
        ('[["bin/a"]]', "absolute path"),
        ('[["a\\u0000"]]', "no program can be given"),
        ('[{"command": ["a"], "networks": true}]', "0.networks: "),
        ('[{"command": ["a"], "network": "no"}]', "0.network: "),
        ('[{"command": ["a"], "read": "/srv"}]', "0.read: "),
        ('[{"command": ["a"], "read": ["srv"]}]', "0.read.0: is no absolute path"),
        ('[{"command": ["a"], "read": ["/srv/../etc"]}]', "0.read.0: "),
        ('[{"command": ["a"], "write": ["/"]}]', "more than a program may have"),
        ('[{"command": ["a"], "read": ["/proc/1"]}]', "more than a program may have"),
        ('[{"command": ["a"], "environment": {"A=B": "secret"}}]', "0.environment"),
        ('[{"command": ["a"], "environment": {"A": 4711}}]', "0.environment.A: "),
        ('[["a"], {"command": ["a"]}]', "listed twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(given: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)) as refused:
        programs_from(given)
    assert "secret" not in str(refused.value)
    assert "4711" not in str(refused.value)


def test_the_check_says_it_and_nothing_starts() -> None:
    environment = {**os.environ, "WAYMARK_MCP_COMMANDS": '[{"command": ["a"], "read": ["srv"]}]'}
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0
    assert "WAYMARK_MCP_COMMANDS: 0.read.0: " in ended.stderr


def test_the_check_warns_of_what_is_not_there(settings: Settings, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    settings.WAYMARK_MCP_COMMANDS = programs_from(
        json.dumps([{"command": [gone], "read": [str(tmp_path)], "write": [f"{gone}/a"]}, ["env"]])
    )
    assert [each.msg for each in check_programs(None)] == [
        f"WAYMARK_MCP_COMMANDS: {gone} is not there.",
        f"WAYMARK_MCP_COMMANDS: {gone}/a is not there.",
    ]


def made(root: Path, *, home: Path) -> Path:
    """A virtual environment with a program, made from the Python in `home`."""
    (root / "bin").mkdir(parents=True)
    (root / "pyvenv.cfg").write_text(f"include-system-site-packages = false\nhome = {home}\nversion = 3.13.0\n")
    (root / "bin" / "python").symlink_to(home / "python3.13")
    program = root / "bin" / "server"
    program.write_text(f"#!{root}/bin/python\n")
    return program


def test_a_program_sees_its_virtual_environment_and_the_python_of_that(tmp_path: Path) -> None:
    home = tmp_path / "pythons" / "3.13" / "bin"
    home.mkdir(parents=True)
    (home / "python3.13").touch()
    by_other_name = tmp_path / "pythons" / "newest"
    by_other_name.symlink_to(home.parent)
    program = made(tmp_path / "environment", home=by_other_name / "bin")
    linked = tmp_path / "server"
    linked.symlink_to(program)
    needed = [str(tmp_path / "environment"), str(by_other_name), str(home.parent)]
    assert own_places(str(program)) == needed
    assert own_places(str(linked)) == [str(linked), *needed]
    assert own_places(str(home / "python3.13")) == [str(home.parent)]


def test_what_is_in_usr_or_at_the_root_is_not_bound(tmp_path: Path) -> None:
    assert own_places("/usr/bin/env") == []
    assert own_places("env") == []
    program = made(tmp_path / "environment", home=Path("/bin"))
    assert own_places(str(program)) == [str(tmp_path / "environment")]
    alone = tmp_path / "bin" / "alone"
    assert own_places(str(alone)) == [str(alone)]


def test_credentials_are_in_no_listing_of_the_settings() -> None:
    (program,) = programs_from(json.dumps([{"command": ["a"], "environment": {"TOKEN": "canary"}}]))
    assert "canary" not in repr(program)
