"""Keys and addresses that the data directory keeps."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from py_vapid import Vapid02

from config import local
from config.embedded.errors import StartError


def test_keys_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    local.ensure_keys(tmp_path, first)
    local.ensure_keys(tmp_path, second)
    assert first == second
    assert len(first["WAYMARK_SECRET_KEY"]) >= 50
    Fernet(first["WAYMARK_FIELD_KEYS"])
    Vapid02.from_raw(first["WAYMARK_VAPID_KEY"].encode())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_keys_of_the_environment_come_first(tmp_path: Path) -> None:
    environment = {"WAYMARK_SECRET_KEY": "given"}
    local.ensure_keys(tmp_path, environment)
    assert environment["WAYMARK_SECRET_KEY"] == "given"
    assert not (tmp_path / "secret_key").exists()


def test_field_keys_that_are_gone_are_not_made_anew_beside_a_database(tmp_path: Path) -> None:
    (tmp_path / "pg").mkdir()
    with pytest.raises(StartError, match="field_keys is missing beside the database"):
        local.ensure_keys(tmp_path, {})
    assert not (tmp_path / "field_keys").exists()
    (tmp_path / "field_keys").touch()  # they are lost, says whoever runs Waymark
    environment: dict[str, str] = {}
    local.ensure_keys(tmp_path, environment)
    Fernet(environment["WAYMARK_FIELD_KEYS"])


def test_several_field_keys_stand_one_on_a_line(tmp_path: Path) -> None:
    (tmp_path / "field_keys").write_text("new\nold\n")
    environment: dict[str, str] = {}
    local.ensure_keys(tmp_path, environment)
    assert environment["WAYMARK_FIELD_KEYS"] == "new,old"


def test_other_commands_find_the_running_servers(tmp_path: Path) -> None:
    local.remember_addresses(tmp_path, {"DATABASE_URL": "postgres://here", "REDIS_URL": "unix://here"})
    environment = {"WAYMARK_DATA": str(tmp_path), "REDIS_URL": "redis://elsewhere"}
    assert local.adopt(environment) == {"DATABASE_URL"}
    assert environment["DATABASE_URL"] == "postgres://here"
    assert environment["REDIS_URL"] == "redis://elsewhere"


def test_addresses_of_servers_that_are_not_ours_are_forgotten(tmp_path: Path) -> None:
    local.remember_addresses(tmp_path, {"DATABASE_URL": "postgres://here", "REDIS_URL": "unix://here"})
    local.remember_addresses(tmp_path, {"REDIS_URL": "unix://here"})
    environment = {"WAYMARK_DATA": str(tmp_path)}
    local.adopt(environment)
    assert "DATABASE_URL" not in environment
