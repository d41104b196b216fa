"""Where the server of a model may be: on the open internet, and elsewhere only for those who may send this server
anywhere.

Without this anybody with an account could make this server knock on doors of its own network (security.md T9). A name
may lead elsewhere at each look-up, so the addresses that were checked are the ones to connect to.
"""

import socket
from typing import Any
from urllib.parse import urlsplit

from tools.addresses import PORTS, AddressRefused as AddressRefused, is_global

FIRST_FREE_PORT = 1024
"""Below it the system's own services listen, which take a request for something else."""


def check(address: str, *, anywhere: bool) -> None:
    """See whether `address` can be the base of a server's addresses.

    Args:
        anywhere: private and local hosts are allowed as well.

    Raises:
        AddressRefused: not an http(s) address, with parts that a base address has not, or inside.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise AddressRefused from None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.query or parts.fragment:
        raise AddressRefused
    if not anywhere:
        try:
            resolve(host, port, anywhere=False)
        except OSError:
            raise AddressRefused from None


def resolve(host: str, port: int, *, anywhere: bool) -> list[tuple[Any, ...]]:
    """Return where to connect to, as `socket.getaddrinfo` does.

    Raises:
        AddressRefused: one of the addresses is inside, and it may not be anywhere.
        OSError: the name leads nowhere.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("the name of the server is none") from None
    if not anywhere and not (_is_public(port) and all(is_global(str(each[4][0])) for each in found)):
        raise AddressRefused
    return found


def _is_public(port: int) -> bool:
    return port in PORTS or port >= FIRST_FREE_PORT
