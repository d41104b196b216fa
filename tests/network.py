"""No test may talk to anything but this machine: connections and name look-ups of Python's sockets are refused."""

import ipaddress
import socket
from typing import Any

Address = Any  # as in socket.connect: a tuple, or a path for unix sockets


class NetworkBlocked(OSError):
    """A test tried to reach another machine."""


def block() -> None:
    """Refuse, for the rest of this process, everything outside the loopback addresses."""
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Address) -> None:
        _refuse_remote(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Address) -> int:
        _refuse_remote(self, address)
        return connect_ex(self, address)

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        if not _is_local(host):
            raise NetworkBlocked(f"tests may not look up {host!r}")
        return look_up(host, *args, **options)

    socket.socket.connect = guarded_connect  # type: ignore[method-assign, assignment]
    socket.socket.connect_ex = guarded_connect_ex  # type: ignore[method-assign, assignment]
    socket.getaddrinfo = guarded_look_up


def _refuse_remote(connection: socket.socket, address: Address) -> None:
    if connection.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
        raise NetworkBlocked(f"tests may not connect to {address!r}")


def _is_local(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(name).split("%")[0]).is_loopback
    except ValueError:
        return False
