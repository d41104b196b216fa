"""The parent of the processes under test: it has imported everything and forks them as `bin/up` does, in milliseconds.

Reads orders from its input, one JSON object a line, and answers each with one. What it starts ends with it.

    {"do": "worker" | "web" | "command", "log": path, "name": of the process, "point": crashpoint or "", "args": […]}
"""

import importlib
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from config.children import fork, preload, run_command, serve_web

WORKER_CONCURRENCY = 60
# What a worker imports with its first run. Here workers live for a second, so it must not take one.
WORKERS_OWN = ("agents.engine.worker", "agents.providers.compatible", "openai.resources.chat.completions")


def main() -> None:
    preload()
    for module in WORKERS_OWN:
        importlib.import_module(module)
    from agents.engine import sweeper

    sweeper.BELL_GRACE = float(os.environ.get("FAULTS_BELL_GRACE", sweeper.BELL_GRACE))
    if mutant := os.environ.get("FAULTS_MUTANT"):
        from tests.faults.mutants import MUTANTS

        MUTANTS[mutant]()
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(orjson.dumps(_obey(orjson.loads(line))) + b"\n")
        sys.stdout.buffer.flush()
        _bury()


def _obey(order: dict[str, Any]) -> dict[str, int]:
    log, name, point = Path(order["log"]), order["name"], order["point"]
    if order["do"] == "web":
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
            listener.set_inheritable(True)
            number = listener.fileno()
            child = fork(partial(_live, name, point, partial(serve_web, number)), log=log, keep=(number,))
            return {"pid": child.pid, "port": listener.getsockname()[1]}
    if order["do"] == "worker":
        life = partial(run_command, "worker", concurrency=WORKER_CONCURRENCY)
    else:
        life = partial(_command, order["args"])
    return {"pid": fork(partial(_live, name, point, life), log=log).pid, "port": 0}


def _live(name: str, point: str, life: Callable[[], None]) -> None:
    """`name` is what PostgreSQL's sessions are called, so that the witness knows who wrote."""
    from agents.engine import crashpoints

    os.environ["PGAPPNAME"] = name
    crashpoints.arm(point)
    life()


def _command(arguments: list[str]) -> None:
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *arguments])


def _bury() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
