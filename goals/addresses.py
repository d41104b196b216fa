"""Where a user may send the server: to model servers on the open internet, unless the user is staff.

Without this anybody with an account could make the server knock on doors of its own network (security.md, T9). It is
checked when an address is entered; that a name may lead elsewhere later is the matter of the fetching itself.
"""

import ipaddress
import socket
from urllib.parse import urlsplit


class AddressRefused(Exception):
    """The address is none, or leads to where its user may not send the server."""


def check(address: str, *, anywhere: bool) -> None:
    """
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
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        raise AddressRefused
    if not anywhere and not all(map(_is_global, _resolve(host, port))):
        raise AddressRefused


def _resolve(host: str, port: int) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        raise AddressRefused from None


def _is_global(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    return (mapped or address).is_global and not address.is_multicast
