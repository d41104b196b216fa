"""The steps of `bin/up`. What they start is handed to the supervisor, which keeps and stops it."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from config import local
from config.children import run_command, serve_web
from config.console import Console
from config.embedded.account import service_account
from config.embedded.errors import StartError
from config.embedded.postgres import Postgres
from config.embedded.process import Process, last_words, wait_ready
from config.embedded.valkey import Valkey
from config.nursery import Nursery, Program
from config.options import Options
from config.supervisor import Service, Supervisor

WEB_READY_SECONDS = 60.0
BACKLOG = 1024
WORKER_CONCURRENCY = 100
# How long workers wait for their runs (config.workers), and what they need after that.
DRAIN_SECONDS = 30.0
SIGN_OFF_SECONDS = 10.0
WEB = "Web server"
# Stopped in this order: whoever uses a server before the server.
APPLICATION, VALKEY, POSTGRES = 0, 1, 2
THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
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


def seen_from_outside(host: str) -> dict[str, str]:
    """What other machines need, when it listens for them."""
    if host in THIS_MACHINE or "WAYMARK_HOSTS" in os.environ:
        return {}
    return {"Others": "see only an error until WAYMARK_HOSTS has the names that they type, such as 192.168.1.5"}


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
        files=server.files,
    )


def fill_environment(data: Path, servers: Sequence[Running], options: Options, address: str) -> None:
    """Everything that the settings read from the environment and that only this start knows."""
    os.environ["WAYMARK_DATA"] = str(data)
    (data / "static").mkdir(exist_ok=True)  # the settings' STATIC_ROOT; WhiteNoise wants it even when it is empty
    addresses = {server.variable: server.url for server, _ in servers}
    os.environ.update(addresses)
    local.remember_addresses(data, addresses | {"WAYMARK_URL": address})
    os.environ.setdefault("WAYMARK_URL", address)
    if not options.verbose:
        os.environ.setdefault("NO_COLOR", "1")  # the logs go to files


def wait_for_servers(servers: Sequence[Running], console: Console) -> None:
    """Return when all answer."""
    for server, process in servers:
        wait_ready(process, server)
        console.step(f"{server.name} ready")


def elsewhere(servers: Sequence[Running], data: Path) -> dict[str, str]:
    """Where the database lies, when not in the data directory (see config.embedded.places)."""
    for server, _ in servers:
        if isinstance(server, Postgres) and server.files.parent != data:
            return {"Database": str(server.files)}
    return {}


def prepare_database(servers: Sequence[Running], address: str) -> str:
    """Make, migrate and furnish the database. Returns how to sign in. Only where Django is set up."""
    from config.owner import ensure_owner, how_to_sign_in
    from config.pending import migrate_if_needed

    for server, _ in servers:
        if isinstance(server, Postgres):
            server.ensure_database()
    migrate_if_needed()
    return how_to_sign_in(ensure_owner(os.environ), address)


def programs(options: Options, data: Path, listener: socket.socket) -> dict[str, Program]:
    """Web and workers, by the names that the console gives them."""
    logs = None if options.verbose else data / "logs"
    number = listener.fileno()
    found = {WEB: Program("waymark-web", partial(serve_web, number), logs and logs / "web.log", keep=(number,))}
    work = partial(run_command, "worker", concurrency=WORKER_CONCURRENCY)
    for index in range(1, options.workers + 1):
        suffix = f"-{index}" if options.workers > 1 else ""
        found[f"Worker{suffix}"] = Program("waymark-worker", work, logs and logs / f"worker{suffix}.log")
    return found


def start_application(
    wanted: Mapping[str, Program], nursery: Nursery, supervisor: Supervisor, data: Path
) -> Mapping[str, Process]:
    """Have web and workers born and kept. Returns their processes by name."""
    born = nursery.deliver()
    patience = float(os.environ.get("WAYMARK_DRAIN_SECONDS", DRAIN_SECONDS)) + SIGN_OFF_SECONDS
    services = (
        Service(name, program.start, APPLICATION, program.log, stop_seconds=patience, files=data)
        for name, program in wanted.items()
    )
    return {service.name: supervisor.add(service, born.get(service.name)) for service in services}


def wait_for_web(web: Process, listener: socket.socket, data: Path) -> None:
    """Return when the web process answers over HTTP."""
    host, port = listener.getsockname()[:2]
    deadline = time.monotonic() + WEB_READY_SECONDS
    while time.monotonic() < deadline:
        if web.poll() is not None:
            raise StartError(f"The web server did not start. {last_words(data / 'logs' / 'web.log', data)}")
        with suppress(OSError), socket.create_connection((EVERY_ADDRESS.get(host, host), port), timeout=1) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            if client.recv(4) == b"HTTP":
                return
    raise StartError(f"The web server does not answer; see {data / 'logs' / 'web.log'}.")
