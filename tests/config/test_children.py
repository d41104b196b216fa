"""What must not be in a process from which others are forked."""

import subprocess
import sys

from tests.config.running import ROOT, environment

LOADED = """
import sys, threading
from config.children import preload
preload()
from django.db import connections
unwanted = {"openai", "anthropic", "mcp", "twisted.internet.reactor", "daphne.server"}
print(sorted(unwanted & set(sys.modules)), threading.active_count(), connections["default"].connection)
"""
SUPERVISOR = """
import sys, threading
import config.up
print(sorted({"django", "environ", "psycopg", "redis", "asyncio"} & set(sys.modules)), threading.active_count())
"""


def test_what_is_loaded_brings_no_threads_no_connections_and_nothing_that_one_child_alone_needs() -> None:
    assert _last_line(LOADED) == "[] 1 None"


def test_the_supervisor_does_not_load_the_program() -> None:
    assert _last_line(SUPERVISOR) == "[] 1"


def _last_line(code: str) -> str:
    keys = {"WAYMARK_SECRET_KEY": "x" * 50, "DATABASE_URL": "postgres:///none", "REDIS_URL": "unix:///none"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, cwd=ROOT, env=environment(**keys), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]
