"""The product's own processes, on the test's database and Redis."""

import atexit
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

from django.db import connection

from tests.children import ROOT, Child, Nursery

FAST = {"WAYMARK_RENEW_SECONDS": "0.2", "WAYMARK_SWEEP_SECONDS": "0.5", "WAYMARK_LEASE_SECONDS": "2"}
_numbers = count()


def environment(**extra: str) -> dict[str, str]:
    """What a process needs to see the database and the Redis of this test."""
    name = connection.settings_dict["NAME"]
    url = re.sub(r"/[^/?]*(?=\?|$)", f"/{name}", os.environ["DATABASE_URL"])
    return {**os.environ, "DATABASE_URL": url, "WAYMARK_LOG_LEVEL": "WARNING", **extra}


@contextlib.contextmanager
def running(*command: str, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of ours while the block runs."""
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment(**extra))
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def worker(**extra: str) -> Iterator[Child]:
    """Run a worker while the block runs. It is told to stop then, and what it has said is shown if the test fails."""
    variables = environment(**(FAST | extra))
    variables.pop("PYTEST_CURRENT_TEST", None)
    nursery = _nursery(frozenset(variables.items()))
    child, _ = nursery.start("worker", f"worker-{next(_numbers)}")
    try:
        yield child
    finally:
        child.send(signal.SIGTERM)
        if not child.is_dead(10):
            child.kill()
        print(nursery.log(child.name))


@cache
def _nursery(variables: frozenset[tuple[str, str]]) -> Nursery:
    """One for each environment, as long as the tests run: loading the program takes longer than most tests."""
    folder = tempfile.TemporaryDirectory(prefix="waymark-workers-")
    nursery = Nursery(Path(folder.name), dict(variables))
    atexit.register(folder.cleanup)
    atexit.register(nursery.close)
    return nursery


@contextlib.contextmanager
def web(**extra: str) -> Iterator[str]:
    """Run the web server; yields its address once it answers."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with running("manage.py", "web", "--port", str(port), **extra):
        wait_until(lambda: answers(f"{address}/healthz"), 60)
        yield address


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    """One below those that the kernel hands out, or another test's server could get it before the one it is for."""
    while True:
        port = random.randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """
    Raises:
        AssertionError: the condition did not become true in time.
    """
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.03)
