"""The application's own processes: forked from one that has loaded everything (config.nursery), so that they share its
memory.

Whoever forks must have no threads and no connections, and what is loaded before must never include what only one child
needs: the model vendors' SDK (workers) and the Twisted reactor (web).
"""

import gc
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from config.embedded.process import call_oneself, die_with_parent

# What web and workers both use, beyond what the installed apps import.
SHARED = ("config.asgi", "config.urls", "rq", "redis", "psycopg_pool", "orjson", "asyncio", "concurrent.futures")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
MOST_DESCRIPTORS = 4096
# The exit code of a child whose program does not fit the database's schema.
UNFIT = os.EX_CONFIG
POLL_SECONDS = 0.002


class Forked:
    """A forked child, with the part of `subprocess.Popen` that the supervisor uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the signal that ended it; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def preload() -> None:
    """Set Django up and import what the children share. The garbage collector must not touch it: it would write to, and
    so copy, every page. It does not run before the fork either, because the holes that it leaves are filled in by the
    children, page by page."""
    gc.disable()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django
    from django.core.exceptions import ImproperlyConfigured

    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(f"The settings are not right: {error}")
    for module in SHARED:
        importlib.import_module(module)
    from django.urls import get_resolver

    _ = get_resolver().url_patterns
    gc.freeze()
    gc.enable()


def require_fit() -> None:
    """Leave the program when it does not fit the database: it was changed while its parent ran."""
    from memory import schema

    try:
        schema.require_fit()
    except schema.SchemaMismatch as mismatch:
        sys.stderr.write(f"{mismatch}\n")
        sys.exit(UNFIT)


def fork(
    run: Callable[[], None],
    *,
    log: Path | None,
    keep: tuple[int, ...] = (),
    heir: int | None = None,
    name: str = "waymark",
) -> Forked:
    """Run a function in a child of its own process group, which the kernel ends with this process.

    Args:
        log: where its output is appended; None leaves it where this process's goes.
        keep: descriptors that it may use; all others but the standard three are closed.
        heir: the process to which this one leaves the child: it begins when this one has ended, and ends with the heir.
        name: under which it is listed.
    """
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Forked(pid)
    code = 1
    try:
        _become_child(log, keep)
        call_oneself(name)
        _belong_to(parent, heir or parent)
        code = _exit_code(run)
    finally:
        os._exit(code)


def run_command(name: str, **options: object) -> None:
    """A `manage.py` command, as the whole of a child's life."""
    from django.core.management import call_command

    sys.argv = ["manage.py", name]
    call_command(name, **options)


def serve_web(listener: int) -> None:
    """Daphne on a socket that listens already, until SIGTERM. Must be the first to touch Twisted in this process."""
    # Twisted loads pyOpenSSL when it is there, 10 MB that nobody here uses: TLS ends at the proxy.
    sys.modules["OpenSSL"] = None  # type: ignore[assignment]
    import uvloop

    from config import reactor

    reactor.install(uvloop.new_event_loop())
    from config.asgi import application
    from config.web_server import serve

    serve(application, [f"fd:fileno={listener}"])


def _become_child(log: Path | None, keep: tuple[int, ...]) -> None:
    signal.set_wakeup_fd(-1)
    for sig in SIGNALS:
        signal.signal(sig, signal.SIG_DFL)
    os.setpgid(0, 0)
    low = 3
    for descriptor in sorted(keep):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, MOST_DESCRIPTORS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if log is not None:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)


def _belong_to(parent: int, heir: int) -> None:
    """A crash of the parent is a crash of all: the servers end as well, so there is nothing to hand over to."""
    while heir != parent and os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    die_with_parent(heir, signal.SIGKILL)


def _exit_code(run: Callable[[], None]) -> int:
    try:
        run()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if isinstance(leaving.code, str):
            sys.stderr.write(f"{leaving.code}\n")
    except BaseException:  # noqa: BLE001 (the last one to see it)
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code
