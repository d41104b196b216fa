"""Where the server of a model may be: on the open internet, and elsewhere only for those who may send this server
anywhere.

Without this anybody with an account could make this server knock on doors of its own network (security.md T9). A name
may lead elsewhere at each look-up, so the addresses that were checked are the ones to connect to.
"""

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

PORTS = (80, 443)
FIRST_FREE_PORT = 1024
"""Below it the system's own services listen, which take a request for something else."""

# Public by its number, but a cloud's own machine answers there, over HTTP and to its guests only.
_INSIDE_CLOUDS = ipaddress.ip_address("168.63.129.16")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(Exception):
    """The address is none, or leads to where its user may not send the server."""


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
    if not anywhere and not (_is_public(port) and all(_is_global(str(each[4][0])) for each in found)):
        raise AddressRefused
    return found


def _is_public(port: int) -> bool:
    return port in PORTS or port >= FIRST_FREE_PORT


def _is_global(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        return _is_global_6(address)
    return address.is_global and not address.is_multicast and address != _INSIDE_CLOUDS


def _is_global_6(address: ipaddress.IPv6Address) -> bool:
    """Addresses that hold one of version 4 lead to where that leads."""
    held = address.ipv4_mapped or address.sixtofour
    if address in _NAT64:
        held = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if held is not None:
        return _is_global(str(held))
    known = address.is_multicast or address.is_reserved or address.is_site_local
    return address.is_global and not known
