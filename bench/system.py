"""Everything that a measurement needs, started on a fresh directory and stopped at the end."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psycopg

from bench.batch import Driver
from bench.processes import children
from bench.sampler import NOW
from config.embedded import embedded_servers
from config.embedded.process import tail

OWNER, LIMIT_DATABASE = "bench@example.org", "bench_limit"
ENOUGH = 10**12  # tokens


@dataclass(frozen=True, slots=True)
class System:
    """
    parts: Waymark's processes by name. postgres: the server's first process.
    """

    model: Driver
    limit: Driver
    client: Driver
    parts: dict[str, int]
    postgres: int
    database_url: str
    profile: Path | None

    @contextmanager
    def profiled(self, wanted: bool) -> Iterator[None]:
        """Let the samplers count while the block runs, if there are any."""
        mark = self.profile / NOW if self.profile and wanted else None
        if mark:
            mark.touch()
        yield
        if mark:
            mark.unlink()

    def prompt_tokens(self) -> int:
        """What Waymark's runs have sent to the model so far."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute("SELECT coalesce(sum(input_tokens), 0) FROM memory_agentrun").fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def started(profile: Path | None, *, budget: bool = False) -> Iterator[System]:
    """`budget`: its user has a monthly budget, which nothing exhausts."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="waymark-bench-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        directory.chmod(0o711)  # as root, PostgreSQL runs as another user and must get in
        stack.enter_context(_last_words(directory / "logs"))
        servers = stack.enter_context(embedded_servers(directory))
        valkey, postgres = (children(os.getpid(), name)[0] for name in ("valkey", "postgres"))
        model = stack.enter_context(Driver("bench.model", dict(os.environ)))
        environment = environment_of(directory, servers.database_url, servers.redis_url, model.first_line, profile)
        waymark = stack.enter_context(Driver("bench.waymark", environment))
        ready: dict[str, Any] = orjson.loads(waymark.first_line)
        limit_url = _limit_database(servers.database_url)
        limit = stack.enter_context(Driver("bench.limit", environment | {"DATABASE_URL": limit_url}))
        client = stack.enter_context(Driver("bench.client", environment | {"WAYMARK_ADDRESS": ready["address"]}))
        client.ask("sign_in", OWNER, environment["WAYMARK_OWNER_PASSWORD"])
        if budget:
            client.ask("set_budget", ENOUGH)
        parts = ready["pids"] | {"valkey": valkey}
        yield System(model, limit, client, parts, postgres, servers.database_url, profile)


@contextmanager
def _last_words(logs: Path) -> Iterator[None]:
    """After a failure show what the servers wrote last: their directory is about to be removed."""
    try:
        yield
    except Exception:
        for log in sorted(logs.glob("*.log")):
            print(f"{log.name}:\n{tail(log, 30)}", file=sys.stderr)
        raise


def environment_of(
    directory: Path, database_url: str, redis_url: str, model_url: str, profile: Path | None
) -> dict[str, str]:
    """The processes' environment: the caller's, without whatever else might point Waymark somewhere else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WAYMARK_", "DJANGO_"))}
    return kept | {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "",
        "WAYMARK_DATA": str(directory),
        "WAYMARK_SECRET_KEY": secrets.token_urlsafe(48),
        "WAYMARK_FIELD_KEYS": "b25seS1mb3ItdGVzdHMtMDEyMzQ1Njc4OWFiY2RlZmc=",
        "WAYMARK_SESSION_TOKENS": "100000000",  # long conversations stay as they are
        "WAYMARK_MAX_RUNNING_PER_USER": "0",  # one person sends everything here
        "WAYMARK_MAX_QUEUED_PER_USER": "0",
        "WAYMARK_REQUESTS_PER_USER": "100000",
        "WAYMARK_VIEWERS_PER_USER": "100000",
        "WAYMARK_CONNECTIONS_PER_ADDRESS": "0",
        "WAYMARK_OWNER_EMAIL": OWNER,
        "WAYMARK_OWNER_PASSWORD": secrets.token_urlsafe(16),
        "MALLOC_ARENA_MAX": "2",  # as bin/up sets it
        "NO_COLOR": "1",
        **({"WAYMARK_BENCH_PROFILE": str(profile)} if profile else {}),
    }


def _limit_database(url: str) -> str:
    """A database of its own for the limit, in the same server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {LIMIT_DATABASE}")
    return url.replace("/waymark?", f"/{LIMIT_DATABASE}?")
