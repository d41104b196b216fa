"""The embedded PostgreSQL: made on first use, reached through a unix socket only."""

import locale
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

from config.embedded.account import Account
from config.embedded.errors import StartError
from config.embedded.places import database_directory, run_directory
from config.embedded.process import Process, is_disk_full, spawn
from config.embedded.programs import postgres_major, postgres_programs
from memory import disk

DATABASE = "waymark"
# Protocol 3.0, user and database postgres. A server that is still recovering refuses it; a port probe would not notice.
STARTUP = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0"
LEFT_BEHIND_SECONDS = 60.0
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",  # every statement here is short
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Postgres:
    """One PostgreSQL server on one data directory.

    Raises:
        StartError: on creation, when the directory holds the data of another major version or cannot be used.
    """

    name = "PostgreSQL"
    variable = "DATABASE_URL"
    stop_signal = signal.SIGINT  # "fast": ends the sessions, writes a checkpoint
    stop_seconds = 30.0
    last_signal = signal.SIGQUIT  # leaves at once; the next start recovers

    def __init__(self, data: Path, account: Account | None, *, durable: bool = True) -> None:
        self.log = data / "logs" / "postgresql.log"
        self._data = data
        self._account = account
        self._durable = durable
        self._run = run_directory(data, account)
        self._programs = postgres_programs(account)
        self.files = database_directory(data, account)
        if self.files.exists():
            _require_major(self.files)

    @property
    def url(self) -> str:
        return self._url(DATABASE)

    def spawn(self) -> Process:
        if not self.files.exists():
            self._create()
        end_left_behind(self.files)
        options = OPTIONS | {"unix_socket_directories": str(self._run)} | ({} if self._durable else NOT_DURABLE)
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self.files), *settings]
        return spawn(command, log=self.log, account=self._account, death_signal=signal.SIGINT)

    def is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            try:
                connection.connect(str(self._run / ".s.PGSQL.5432"))
                connection.sendall((len(STARTUP) + 4).to_bytes(4, "big") + STARTUP)
                return connection.recv(1) == b"R"
            except OSError:
                return False

    def ensure_database(self) -> None:
        """Make the application's database when it is missing."""
        import psycopg  # 12 MB that the supervisor, which never calls this, does without
        from psycopg import sql

        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def _url(self, database: str) -> str:
        return f"postgres://postgres@/{database}?host={quote(str(self._run), safe='')}"

    def _create(self) -> None:
        """Fill a directory of another name and rename it: one left half-made is never mistaken for a database."""
        unfinished = self.files.with_name("pg.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self._account:
            os.chown(unfinished, self._account.uid, self._account.gid)
        self._initdb(unfinished)
        unfinished.rename(self.files)
        if self.files.parent != self._data:
            (self._data / "pg").symlink_to(self.files)

    def _initdb(self, directory: Path) -> None:
        """All text in UTF-8, sorted by code point: the order never changes with the operating system's libraries."""
        arguments = ["--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale-provider=builtin"]
        arguments += ["--builtin-locale=C.UTF-8", f"--locale={_character_types()}", "--username=postgres"]
        result = subprocess.run(
            [self._programs / "initdb", "-D", directory, *arguments, *([] if self._durable else ["--no-sync"])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            process_group=0,
            user=self._account.uid if self._account else None,
            group=self._account.gid if self._account else None,
            extra_groups=[] if self._account else None,
            check=False,
        )
        if result.returncode != 0:
            words, place = f"{result.stdout}{result.stderr}", directory.parent
            why = f" {disk.words(place)}." if is_disk_full(words, place) else f"\n{words}"
            raise StartError(f"The database could not be created in {directory}.{why}")


def end_left_behind(files: Path) -> None:
    """End a server that still runs on these files although its parent is gone, and remove the note it left.

    The caller holds the data directory's lock, so nobody else runs one here on purpose. Where there is no /proc
    PostgreSQL's own check must do.
    """
    note = files / "postmaster.pid"
    if not note.exists() or not Path("/proc/self/cwd").exists():
        return
    deadline = time.monotonic() + LEFT_BEHIND_SECONDS
    postmaster = int(note.read_text().split("\n", 1)[0] or 0)
    while living := _processes_in(files):
        if time.monotonic() > deadline:
            raise StartError(f"An older PostgreSQL (processes {living}) still runs on {files} and does not end.")
        if postmaster in living:
            os.kill(postmaster, signal.SIGINT)
        time.sleep(0.1)
        postmaster = 0 if time.monotonic() < deadline - 1 else postmaster
    note.unlink(missing_ok=True)


def _processes_in(files: Path) -> list[int]:
    """The processes whose working directory is that one: PostgreSQL's all are in theirs."""
    here = os.path.realpath(files)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") == here:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _require_major(files: Path) -> None:
    there, here = (files / "PG_VERSION").read_text().strip(), str(postgres_major())
    if there != here:
        raise StartError(
            f"The database in {files} was made by PostgreSQL {there}; this Waymark brings PostgreSQL {here}. "
            'Nothing was changed. See "A new major version of PostgreSQL" in docs/operations.md.'
        )


def _character_types() -> str:
    """C.UTF-8 where the C library has it (letters beyond ASCII are letters for full-text search), else C."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return "C"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C.UTF-8"
