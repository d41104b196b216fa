"""Real servers for the tests, started before Django reads its settings.

One PostgreSQL serves all processes of a test run; each pytest-xdist process has a database of its own (by
pytest-django), and a Valkey of its own, because some tests empty it, fill its memory, or end its connections.
DATABASE_URL and REDIS_URL, when both are set, name the servers to use instead; then each process has but a Redis
database and a key prefix of its own.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from django.core.management import execute_from_command_line

from config.embedded import embedded_servers
from config.embedded.account import service_account
from config.embedded.places import data_directory
from config.embedded.process import stopped, wait_ready
from config.embedded.valkey import Valkey

# Where the servers of this test run are; not set when its Redis is somebody else's.
DIRECTORY = "WAYMARK_TESTS_DIRECTORY"

# Fixed values: what a test writes with them means nothing to anybody.
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "WAYMARK_SECRET_KEY": "only-for-tests-0123456789abcdefghijklmnopqrstuvwxyz-0123456789",
    "WAYMARK_FIELD_KEYS": "b25seS1mb3ItdGVzdHMtMDEyMzQ1Njc4OWFiY2RlZmc=",
    "WAYMARK_VAPID_KEY": "b25seS1mb3ItdGVzdHMtMDEyMzQ1Njc4OWFiY2RlZmc",
    "OPENAI_BASE_URL": "",
    "OPENAI_API_KEY": "",
}


def start() -> None:
    """Fill the environment: servers, keys, and this process's share of Redis."""
    worker = re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", ""))
    if not worker:
        _start_servers()
    elif DIRECTORY in os.environ:
        _start_valkey(Path(os.environ.pop(DIRECTORY)) / f"valkey-{worker}")  # popped: its children use this one
    os.environ.update(SETTINGS)
    share = int(worker) + 1 if worker else 0
    os.environ["REDIS_URL"] = redis_database(os.environ["REDIS_URL"], share)
    os.environ["WAYMARK_REDIS_PREFIX"] = f"test{share}:"


def redis_database(url: str, number: int) -> str:
    """The same Redis server, another of its numbered databases."""
    if url.startswith("unix:"):
        return f"{url.split('?', 1)[0]}?db={number}"
    return re.sub(r"(?<=[^/])/\d*$", "", url) + f"/{number}"


def _start_servers() -> None:
    if "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ:
        return
    directory = Path(tempfile.mkdtemp(prefix="waymark-tests-"))
    directory.chmod(0o711)  # as root, PostgreSQL runs as another user and must get in
    (directory / "static").mkdir()
    os.environ["WAYMARK_DATA"] = str(directory)
    if "REDIS_URL" not in os.environ:
        os.environ[DIRECTORY] = str(directory)
    cleanup = ExitStack()
    cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(cleanup.close)
    servers = cleanup.enter_context(embedded_servers(directory, durable=False))
    os.environ.setdefault("DATABASE_URL", servers.database_url)
    os.environ.setdefault("REDIS_URL", servers.redis_url)


def _start_valkey(directory: Path) -> None:
    data = data_directory(directory)
    server = Valkey(data, service_account(data))
    process = server.spawn()
    owner = os.getpid()

    @atexit.register
    def stop() -> None:
        if os.getpid() == owner:  # some tests fork
            stopped(process, server)

    wait_ready(process, server)
    os.environ["REDIS_URL"] = server.url


if __name__ == "__main__":  # python -m tests.servers COMMAND…: a manage.py command on such servers
    start()
    execute_from_command_line(["manage.py", *sys.argv[1:]])
