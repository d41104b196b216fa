"""Waymark's processes as `bin/up` makes them, with a worker that holds 220 runs at once, on servers that the
environment names. Prints one line of JSON when it is ready and stops everything when its input ends.

aiohttp, which only the limit needs, is hidden from them: the openai package would load it, and no installation has it.

With WAYMARK_BENCH_PROFILE, a directory, web and worker leave a profile there.
"""

import json
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.sampler import sampled
from config.children import Forked, run_command, serve_web
from config.nursery import Nursery, Program
from config.startup import listen, prepare_database

CONCURRENCY = 220
READY_SECONDS = 60


def main() -> None:
    sys.modules["aiohttp"] = None  # type: ignore[assignment]
    data = Path(os.environ["WAYMARK_DATA"])
    listener = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    (data / "static").mkdir(exist_ok=True)
    number = listener.fileno()
    programs = {
        "web": _program(data, "web", partial(serve_web, number), keep=(number,)),
        "worker": _program(data, "worker", partial(run_command, "worker", concurrency=CONCURRENCY)),
    }
    with Nursery(partial(prepare_database, (), address), programs, data / "logs" / "prepare.log") as nursery:
        nursery.prepare()
        children = nursery.deliver()
    try:
        _wait(address, children)
        pids = {name: child.pid for name, child in children.items()}
        print(json.dumps({"address": address, "pids": {"parent": os.getpid(), **pids}}), flush=True)
        sys.stdin.read()
    finally:
        _stop(children)


def _program(data: Path, name: str, run: Callable[[], None], keep: tuple[int, ...] = ()) -> Program:
    folder = os.environ.get("WAYMARK_BENCH_PROFILE")
    wanted = partial(sampled, run, Path(folder) / f"{name}.json") if folder else run
    return Program(f"bench-{name}", wanted, data / "logs" / f"{name}.log", keep)


def _wait(address: str, children: dict[str, Forked]) -> None:
    """Return when web, database, Valkey and worker all say that they are there."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if dead := [name for name, child in children.items() if child.poll() is not None]:
            raise RuntimeError(f"{dead} did not start")
        try:
            urllib.request.urlopen(f"{address}/readyz", timeout=2).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise RuntimeError("Waymark is not ready")


def _stop(children: dict[str, Forked]) -> None:
    for child in children.values():
        child.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 20
    while any(child.poll() is None for child in children.values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    for child in children.values():
        child.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    main()
