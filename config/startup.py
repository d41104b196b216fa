"""The steps of `bin/up`. What they start is handed to the supervisor, which keeps and stops it."""

import http.client
import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from config import local
from config.children import fork, run_command, serve_web
from config.console import Console
from config.embedded.account import service_account
from config.embedded.errors import StartError
from config.embedded.postgres import Postgres
from config.embedded.process import Process, tail, wait_ready
from config.embedded.valkey import Valkey
from config.options import Options
from config.supervisor import Service, Supervisor

WEB_READY_SECONDS = 60.0
BACKLOG = 1024
WORKER_CONCURRENCY = 100
# Stopped in this order: whoever uses a server before the server.
APPLICATION, VALKEY, POSTGRES = 0, 1, 2
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (names them, listens on none)

type Running = tuple[Postgres | Valkey, Process]


def listen(host: str, port: int) -> socket.socket:
    """The web server's socket, listening. Held by the parent: callers wait while a web process is restarted, and a
    taken port shows before anything else is started."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except PermissionError:
        raise StartError(
            f"Ports below 1024 are for root. Choose another with --port, for example {port + 8000}."
        ) from None
    except OSError as error:
        raise StartError(
            f"Cannot listen on {host} port {port}: {error.strerror}. Stop what uses it, or choose another with --port."
        ) from None
    return listener


def address_of(host: str, listener: socket.socket) -> str:
    """The address to open in a browser on this machine."""
    name = EVERY_ADDRESS.get(host, host)
    port = listener.getsockname()[1]
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def start_servers(data: Path, supervisor: Supervisor) -> list[Running]:
    """Start the built-in servers that the environment names no other for. Does not wait until they are ready."""
    account = service_account(data)
    running: list[Running] = []
    if "REDIS_URL" not in os.environ:
        valkey = Valkey(data, account)
        running.append((valkey, supervisor.add(_service(valkey, VALKEY))))
    if "DATABASE_URL" not in os.environ:
        postgres = Postgres(data, account)
        running.append((postgres, supervisor.add(_service(postgres, POSTGRES))))
    return running


def _service(server: Postgres | Valkey, order: int) -> Service:
    return Service(
        server.name,
        server.spawn,
        order,
        server.log,
        stop_signal=server.stop_signal,
        stop_seconds=server.stop_seconds,
        hurried_seconds=3.0 if order == POSTGRES else 0.0,
        last_signal=server.last_signal,
        group=False,
    )


def fill_environment(data: Path, servers: Sequence[Running], options: Options) -> None:
    """Everything that the settings read from the environment and that only this start knows."""
    os.environ["WAYMARK_DATA"] = str(data)
    (data / "static").mkdir(exist_ok=True)  # the settings' STATIC_ROOT; WhiteNoise wants it even when it is empty
    addresses = {server.variable: server.url for server, _ in servers}
    os.environ.update(addresses)
    local.remember_addresses(data, addresses)
    local.ensure_keys(data, os.environ)
    if not options.verbose:
        os.environ.setdefault("NO_COLOR", "1")  # the logs go to files


def wait_for_servers(servers: Sequence[Running], console: Console) -> None:
    """Return when all answer and the application's database is there."""
    for server, process in servers:
        wait_ready(process, server)
        if isinstance(server, Postgres):
            server.ensure_database()
        console.step(f"{server.name} ready")


def elsewhere(servers: Sequence[Running], data: Path) -> dict[str, str]:
    """Where the database lies, when not in the data directory (see config.embedded.places)."""
    for server, _ in servers:
        if isinstance(server, Postgres) and server.files.parent != data:
            return {"Database": str(server.files)}
    return {}


def prepare_database(data: Path, address: str) -> str:
    """Migrate and make the owner, in a child, so that the parent never has a connection. Returns how to sign in."""
    log = data / "logs" / "prepare.log"
    log.unlink(missing_ok=True)
    reader, writer = os.pipe()
    child = fork(partial(_prepare, writer, address), log=log, keep=(writer,))
    os.close(writer)
    try:
        with os.fdopen(reader) as pipe:
            sign_in = pipe.read()
        while child.poll() is None:
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
    if child.returncode != 0:
        raise StartError(f"The database could not be brought up to date. From {log}:\n{tail(log)}")
    return sign_in


def _prepare(writer: int, address: str) -> None:
    from config.owner import ensure_owner, how_to_sign_in
    from config.pending import migrate_if_needed

    migrate_if_needed()
    text = how_to_sign_in(ensure_owner(os.environ), address)
    with os.fdopen(writer, "w") as pipe:
        pipe.write(text)


def start_application(options: Options, data: Path, listener: socket.socket, supervisor: Supervisor) -> Process:
    """Fork web and workers. Returns the web process."""
    logs = None if options.verbose else data / "logs"

    def add(name: str, log_name: str, run: partial[None], keep: tuple[int, ...] = ()) -> Process:
        log = logs / f"{log_name}.log" if logs else None
        return supervisor.add(Service(name, lambda: fork(run, log=log, keep=keep), APPLICATION, log))

    number = listener.fileno()
    web = add("Web server", "web", partial(serve_web, number), keep=(number,))
    for index in range(1, options.workers + 1):
        suffix = f"-{index}" if options.workers > 1 else ""
        add(f"Worker{suffix}", f"worker{suffix}", partial(run_command, "worker", concurrency=WORKER_CONCURRENCY))
    return web


def wait_for_web(web: Process, listener: socket.socket, data: Path) -> None:
    """Return when the web process answers over HTTP."""
    host, port = listener.getsockname()[:2]
    deadline = time.monotonic() + WEB_READY_SECONDS
    while time.monotonic() < deadline:
        if web.poll() is not None:
            raise StartError(f"The web server did not start:\n{tail(data / 'logs' / 'web.log')}")
        connection = http.client.HTTPConnection(EVERY_ADDRESS.get(host, host), port, timeout=1)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            connection.getresponse()
            return
        connection.close()
    raise StartError(f"The web server does not answer; see {data / 'logs' / 'web.log'}.")
