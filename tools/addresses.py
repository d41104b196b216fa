"""Which addresses are on the open internet: the one rule for everything that opens an address which somebody has given
(threat T9)."""

import ipaddress
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

# Global by their registries, and yet answered nearby: a cloud's own machine, the protocols of routers, relays to 6to4.
_NEARBY_4 = tuple(map(IPv4Network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
# What was given to people to be reached from everywhere, and what of it is for protocols (Teredo among them) and books.
_GIVEN_6 = IPv6Network("2000::/3")
_NEARBY_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_NAT64 = IPv6Network("64:ff9b::/96")


PORTS = (80, 443)
OTHER_PORT = "Only the ports 80 and 443 are open"
INSIDE = "is inside a private network, where this server opens nothing."


class AddressRefused(Exception):
    """The address is none, or leads to where it may not be followed."""


def check_port(port: int) -> None:
    """Raises: AddressRefused: nothing of strangers is opened there."""
    if port not in PORTS:
        raise AddressRefused(f"{OTHER_PORT}, not {port}.")


def check_global(host: str, figures: Iterable[str]) -> None:
    """
    Args:
        figures: all that a resolver has found for the host.

    Raises:
        AddressRefused: one of them is not on the open internet.
    """
    if not all(map(is_global, figures)):
        raise AddressRefused(f"{host} {INSIDE}")


def is_global(figures: str) -> bool:
    """Whether an address in figures, as a resolver gives it, leads to the open internet and nowhere nearer.

    Raises:
        ValueError: it is no address.
    """
    address = ipaddress.ip_address(figures.partition("%")[0])
    if isinstance(address, IPv4Address):
        return _is_global_4(address)
    held = _held(address)
    if held is not None:
        return _is_global_4(held)
    return address.is_global and address in _GIVEN_6 and not any(address in nearby for nearby in _NEARBY_6)


def _is_global_4(address: IPv4Address) -> bool:
    known = address.is_multicast or any(address in nearby for nearby in _NEARBY_4)
    return address.is_global and not known


def _held(address: IPv6Address) -> IPv4Address | None:
    """The address of version 4 to which packets for this one go, for those that hold one."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
