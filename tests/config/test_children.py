"""What the parent of the forks must not have."""

import subprocess
import sys

from tests.config.running import ROOT, environment

CHECK = """
import sys, threading
from config.children import preload
preload()
from django.db import connections
unwanted = {"openai", "anthropic", "mcp", "twisted.internet.reactor", "daphne.server"}
print(sorted(unwanted & set(sys.modules)), threading.active_count(), connections["default"].connection)
"""


def test_the_parent_has_no_threads_no_connections_and_nothing_that_one_child_alone_needs() -> None:
    keys = {"WAYMARK_SECRET_KEY": "x" * 50, "DATABASE_URL": "postgres:///none", "REDIS_URL": "unix:///none"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHECK], cwd=ROOT, env=environment(**keys), capture_output=True, text=True
    )
    assert result.stdout.split("\n")[-2] == "[] 1 None", result.stderr
