"""Where a request comes from."""

from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

NETWORK_BITS = 64  # of IPv6: what one household or one rented machine has for itself


def address_of(request: HttpRequest) -> str:
    """The address of whoever asks, "" when it has none. Behind WAYMARK_PROXIES proxies the outermost of them wrote it
    into X-Forwarded-For; what stands before that was written by the caller. Of IPv6, the network."""
    return _network(_forwarded(request) or request.META.get("REMOTE_ADDR") or "")


def _forwarded(request: HttpRequest) -> str:
    proxies = settings.WAYMARK_PROXIES
    told = request.headers.get("X-Forwarded-For", "").split(",")
    return told[-proxies].strip() if 0 < proxies <= len(told) else ""


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or ip_network((found, NETWORK_BITS), strict=False).network_address)
