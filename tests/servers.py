"""Real servers for the tests, started before Django reads its settings.

One PostgreSQL and one Valkey serve all processes of a test run; each pytest-xdist process has a database of its own
(by pytest-django) and a Redis database and key prefix of its own. DATABASE_URL and REDIS_URL, when both are set, name
the servers to use instead.
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

# Fixed values: what a test writes with them means nothing to anybody.
SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "WAYMARK_SECRET_KEY": "only-for-tests-0123456789abcdefghijklmnopqrstuvwxyz-0123456789",
    "WAYMARK_FIELD_KEYS": "b25seS1mb3ItdGVzdHMtMDEyMzQ1Njc4OWFiY2RlZmc=",
    "OPENAI_BASE_URL": "",
    "OPENAI_API_KEY": "",
}


def start() -> None:
    """Fill the environment: servers, keys, and this process's share of Redis."""
    worker = re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", ""))
    if not worker:
        _start_servers()
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
    cleanup = ExitStack()
    cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(cleanup.close)
    servers = cleanup.enter_context(embedded_servers(directory, durable=False))
    os.environ.setdefault("DATABASE_URL", servers.database_url)
    os.environ.setdefault("REDIS_URL", servers.redis_url)


if __name__ == "__main__":  # python -m tests.servers COMMAND…: a manage.py command on such servers
    start()
    execute_from_command_line(["manage.py", *sys.argv[1:]])
