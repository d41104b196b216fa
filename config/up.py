"""`bin/up`: from nothing to a running Waymark, in one terminal."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from config import local
from config.console import Console
from config.embedded.errors import StartError
from config.embedded.places import claimed, data_directory
from config.embedded.process import call_oneself
from config.nursery import Nursery
from config.options import Options, parse
from config.startup import (
    WEB,
    address_of,
    elsewhere,
    fill_environment,
    listen,
    prepare_database,
    programs,
    seen_from_outside,
    start_application,
    start_servers,
    wait_for_servers,
    wait_for_web,
)
from config.supervisor import Interrupted, Supervisor
from memory import disk


def main(arguments: Sequence[str]) -> int:
    """Run until Ctrl-C. Returns the exit code."""
    options, console = parse(arguments), Console()
    try:
        with ExitStack() as stack:
            _run(options, console, stack)
    except Interrupted:
        pass
    except StartError as error:
        console.say(str(error))
        return 1
    except OSError as error:
        if error.errno not in disk.FULL:
            raise
        console.say(f"{disk.words(options.data or local.data_path(os.environ))}.")
        return 1
    console.say("Stopped.")
    return 0


def _run(options: Options, console: Console, stack: ExitStack) -> None:
    """The parts of Waymark, one after the other. They are stopped by the stack, in the opposite order."""
    call_oneself("waymark-up")
    local.read_env_file()
    data = data_directory(options.data or local.data_path(os.environ))
    listener = listen(options.host, options.port)
    stack.enter_context(claimed(data))
    console.log = None if options.verbose else data / "logs" / "up.log"
    supervisor = stack.enter_context(Supervisor(console))
    stack.callback(listener.close)

    local.ensure_keys(data, os.environ)  # before there is a database: it shows whether one was there
    servers = start_servers(data, supervisor)
    address, wanted = address_of(options.host, listener), programs(options, data, listener)
    fill_environment(data, servers, options, address)
    with Nursery(partial(prepare_database, servers, address), wanted, data / "logs" / "prepare.log") as nursery:
        wait_for_servers(servers, console)
        sign_in = nursery.prepare()
        console.step("Database up to date")
        born = start_application(wanted, nursery, supervisor, data)
    wait_for_web(born[WEB], listener, data)
    console.step("Web server ready")
    console.ready(
        {
            "Open": address,
            "Sign in": sign_in,
            "Data": str(data),
            **elsewhere(servers, data),
            **seen_from_outside(options.host),
            "Processes": ", ".join(f"{name} {process.pid}" for name, process in born.items()),
            "Logs": "here" if options.verbose else str(data / "logs"),
            "Stop": "Ctrl-C",
        }
    )
    supervisor.run()
