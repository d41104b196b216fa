"""A whole Waymark that may be broken: servers, processes and the links between them, all of its own."""

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import psycopg
import redis

from config.embedded.account import service_account
from config.embedded.places import data_directory
from config.embedded.postgres import Postgres
from config.embedded.process import Process, Server, gone, stopped, wait_ready
from config.embedded.valkey import Valkey
from tests.children import Child, Nursery, said
from tests.faults.door import Door, Goal
from tests.faults.mind import Mind
from tests.faults.proxy import Proxy
from tests.faults.sink import Sink
from tests.llm_server import LLMServer
from tests.processes import wait_until

# Short, so that a repetition takes seconds; in the proportions of the real ones, but that a model is waited for even
# less, and that as many runs of a user are at work as the scenarios begin at once.
LEASE, RENEW, SWEEP, BELL_GRACE = 2.0, 0.4, 0.3, 1.0
HELD, FIRST_WAIT, SUMMARY, TICK = 0.1, 0.2, 3.0, 1.0
AT_ONCE = 4
OWNER = {"WAYMARK_OWNER_EMAIL": "owner@example.org", "WAYMARK_OWNER_PASSWORD": "a long enough pass phrase"}
WITNESS = Path(__file__).with_name("witness.sql")


@dataclass
class Site:
    """Everything is there while it is entered.

    `fragile` workers reach PostgreSQL, Valkey and the model through proxies, all others directly.
    """

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="waymark-faults-")))
    cleanup: ExitStack = field(default_factory=ExitStack)
    processes: dict[str, Process] = field(default_factory=dict)
    children: list[Child] = field(default_factory=list)
    nurseries: dict[tuple[bool, str], Nursery] = field(default_factory=dict)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.callback(self.__exit__)
            self._start()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.send(signal.SIGKILL)
        self.cleanup.close()

    def _start(self) -> None:
        self.folder.chmod(0o711)
        self.cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        data = data_directory(self.folder)
        (data / "static").mkdir()
        account = service_account(data)
        self.postgres, self.valkey = Postgres(data, account), Valkey(data, account)
        for server in (self.postgres, self.valkey):
            self.spawn(server)
            self.cleanup.callback(self._stop, server)
        self.cleanup.callback(self._hang_up)
        self.postgres.ensure_database()
        self.sink = self.cleanup.enter_context(Sink())
        self.model = self.cleanup.enter_context(LLMServer())
        self.model.keep_log = False
        self.mind = Mind()
        self.model.always(self.mind)
        self.to_postgres, self.to_valkey, self.to_model = map(self._proxied, self._upstreams())
        self.command("migrate", "--verbosity", "0")
        self.command("owner")
        self.database.execute(WITNESS.read_text())
        token = self.command("token", OWNER["WAYMARK_OWNER_EMAIL"]).split()[-1]
        self.web, port = self.start("web", "web")
        self.door = Door(f"http://127.0.0.1:{port}", token)

    # -- Servers

    def spawn(self, server: Server) -> None:
        """Only from a thread that lives as long as the site: the kernel ends the server with it."""
        self.processes[server.name] = server.spawn()
        wait_ready(self.processes[server.name], server)

    def _stop(self, server: Server) -> None:
        stopped(self.processes[server.name], server)

    def _hang_up(self) -> None:
        if self._database is not None:
            self._database.close()

    def end(self, server: Server, number: int) -> None:
        if server is self.postgres:
            self._hang_up()
        self.processes[server.name].send_signal(number)
        assert gone(self.processes[server.name], 30)

    @cached_property
    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.valkey.url)

    @property
    def database(self) -> psycopg.Connection[Any]:
        """A connection of the tests' own, around the proxies; anew after a restart."""
        if self._database is None or self._database.closed or self._database.broken:
            self._database = psycopg.connect(self.postgres.url, autocommit=True)
        return self._database

    _database: psycopg.Connection[Any] | None = None

    # -- Processes

    def start(
        self, do: str, name: str = "", *, point: str = "", fragile: bool = False, mutant: str = ""
    ) -> tuple[Child, int]:
        name = name or f"{do}-{len(self.children)}"
        child, port = self._nursery(fragile, mutant).start(do, name, point)
        self.children.append(child)
        return child, port

    @contextlib.contextmanager
    def worker(self, **how: Any) -> Iterator[Child]:
        """A worker that is killed, if it still lives, when the block ends."""
        child, _ = self.start("worker", **how)
        try:
            yield child
        finally:
            child.send(signal.SIGCONT)
            child.kill()

    def log(self, child: Child) -> str:
        return said(self.folder, child.name)

    def command(self, *args: str) -> str:
        """The output of a manage.py command."""
        name = f"command-{len(self.children)}"
        child, _ = self._nursery(False, "").start("command", name, "", args)
        self.children.append(child)
        assert child.is_dead(120)
        return self.log(child)

    def _nursery(self, fragile: bool, mutant: str) -> Nursery:
        if (fragile, mutant) not in self.nurseries:
            nursery = Nursery(self.folder, self._environment(fragile) | ({"FAULTS_MUTANT": mutant} if mutant else {}))
            self.nurseries[fragile, mutant] = nursery
            self.cleanup.callback(nursery.close)
        return self.nurseries[fragile, mutant]

    def _environment(self, fragile: bool) -> dict[str, str]:
        model = f"http://127.0.0.1:{self.to_model.port}/v1" if fragile else self.model.url
        postgres = f"postgres://postgres@127.0.0.1:{self.to_postgres.port}/waymark" if fragile else self.postgres.url
        return OWNER | {
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "DATABASE_URL": postgres,
            "REDIS_URL": f"redis://127.0.0.1:{self.to_valkey.port}/0" if fragile else self.valkey.url,
            "OPENAI_BASE_URL": model,
            "OPENAI_API_KEY": "key-of-the-tests",
            "WAYMARK_MODEL": "m",
            "WAYMARK_DATA": str(self.folder),
            "WAYMARK_LEASE_SECONDS": str(LEASE),
            "WAYMARK_RENEW_SECONDS": str(RENEW),
            "WAYMARK_SWEEP_SECONDS": str(SWEEP),
            "WAYMARK_TICK_SECONDS": str(TICK),
            "WAYMARK_RETRY_HELD_SECONDS": str(HELD),
            "WAYMARK_RETRY_FIRST_SECONDS": str(FIRST_WAIT),
            "WAYMARK_SUMMARY_SECONDS": str(SUMMARY),
            "WAYMARK_SUMMARY_TRIES": "100",
            "WAYMARK_MAX_CALLS": "1000",
            "WAYMARK_MAX_WAITING_MESSAGES": "0",
            "WAYMARK_MAX_RUNNING_PER_USER": str(AT_ONCE),
            "WAYMARK_MAX_ITERATIONS": "200",
            "WAYMARK_MAX_SAME_TOOL": "200",
            "WAYMARK_DRAIN_SECONDS": "10",
            "WAYMARK_LOG_LEVEL": "INFO",
            "FAULTS_SINK": self.sink.address,
            "FAULTS_BELL_GRACE": str(BELL_GRACE),
        }

    def _upstreams(self) -> tuple[Path | tuple[str, int], ...]:
        directory = Path(parse_qs(urlsplit(self.postgres.url).query)["host"][0])
        port = urlsplit(self.model.address).port
        assert port
        return directory / ".s.PGSQL.5432", directory / "valkey.sock", ("127.0.0.1", port)

    def _proxied(self, upstream: Path | tuple[str, int]) -> Proxy:
        return self.cleanup.enter_context(Proxy(upstream))

    # -- What the scenarios ask for

    def goals(self, count: int) -> list[Goal]:
        """New goals of the owner."""
        wait_until(self.pages_answer, 60)
        found = []
        for number in range(count):
            status, goal = self.door.post("goals", {"title": f"Goal {number}"})
            assert status == 201, goal
            row = self.database.execute("SELECT thread_id FROM goals_goal WHERE id = %s", [goal["id"]]).fetchone()
            assert row
            found.append(Goal(goal["id"], row[0]))
        return found

    def second_door(self, port: int) -> Door:
        """The same device at another web process."""
        return Door(f"http://127.0.0.1:{port}", self.door.token, self.door.accepted)

    def live(self, goals: Collection[Goal]) -> int:
        """How many of these goals' runs are not over."""
        sql = "SELECT count(*) FROM memory_thread WHERE id = ANY(%s) AND (live_run IS NOT NULL OR pending > 0)"
        row = self.database.execute(sql, [[goal.thread for goal in goals]]).fetchone()
        return int(row[0]) if row else 0

    def quiet(
        self, goals: Collection[Goal], seconds: float = 60, meanwhile: Callable[[], object] = lambda: None
    ) -> bool:
        """Whether all of it is over in that time; what is not is the oracle's to tell. `meanwhile` is done again and
        again until then."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with contextlib.suppress(psycopg.OperationalError):
                if not self.live(goals):
                    return True
            meanwhile()
            time.sleep(0.05)
        return False

    def heal(self) -> None:
        """Servers and links are well again."""
        for server in (self.postgres, self.valkey):
            if self.processes[server.name].poll() is not None:
                self.spawn(server)
        for proxy in (self.to_postgres, self.to_valkey, self.to_model):
            proxy.heal()
        wait_until(self.pages_answer, 60)

    def pages_answer(self) -> bool:
        try:
            return self.door.get("goals") is not None
        except OSError:
            return False
