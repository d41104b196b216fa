"""The embedded Valkey: queue, live events and presence. It keeps nothing on disk, because PostgreSQL is the truth."""

import signal
import socket
from pathlib import Path
from urllib.parse import quote

from config.embedded.account import Account
from config.embedded.places import run_directory
from config.embedded.process import Process, spawn
from config.embedded.programs import valkey_program

DATABASES = 64  # test processes use one each


class Valkey:
    """One Valkey server for one data directory."""

    name = "Valkey"
    variable = "REDIS_URL"
    stop_signal = signal.SIGTERM
    stop_seconds = 5.0
    last_signal = signal.SIGKILL

    def __init__(self, data: Path, account: Account | None) -> None:
        self.log = data / "logs" / "valkey.log"
        self._account = account
        self._run = run_directory(data, account)
        self.files = self._run
        self._socket = self._run / "valkey.sock"
        self._program = valkey_program(account)

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket))}?db=0"

    def spawn(self) -> Process:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._run),
            "save": "",
            "appendonly": "no",
            "maxclients": "5000",
            "databases": str(DATABASES),
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        return spawn([str(self._program), *arguments], log=self.log, account=self._account, death_signal=signal.SIGTERM)

    def is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            try:
                connection.connect(str(self._socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
            except OSError:
                return False
