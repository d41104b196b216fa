"""Which pages may open a websocket. Browsers send cookies with it whatever the page, and CORS does not apply."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

type Scope = dict[str, Any]
type Receive = Callable[[], Awaitable[Any]]
type SendMessage = Callable[[dict[str, Any]], Awaitable[None]]
type Application = Callable[[Scope, Receive, SendMessage], Awaitable[None]]

LOCAL_HOSTS = ["localhost", ".localhost", "127.0.0.1", "[::1]"]
_PORTS = {"http": "80", "https": "443"}


class SameOriginOnly:
    """Refuse the handshake (HTTP 403) unless its Origin is this site: scheme, host and port, or a trusted origin."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        if is_allowed(scope):
            await self._application(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 4403})


def is_allowed(scope: Scope) -> bool:
    origins = [value for name, value in scope["headers"] if name.lower() == b"origin"]
    hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
    if len(origins) != 1 or len(hosts) != 1:
        return False
    try:
        origin, host = origins[0].decode("ascii").lower(), hosts[0].decode("ascii").lower()
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in _PORTS or not parts.hostname or f"{parts.scheme}://{parts.netloc}" != origin:
        return False
    own = _is_known(host) and _full(_scheme(scope), host) == _full(parts.scheme, parts.netloc)
    return own or _is_trusted(origin, parts.scheme, parts.hostname, port)


def _is_known(host: str) -> bool:
    allowed = settings.ALLOWED_HOSTS or (LOCAL_HOSTS if settings.DEBUG else [])
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def _scheme(scope: Scope) -> str:
    """The scheme that the browser used, which behind a proxy is what the proxy says (if settings trust it)."""
    if settings.SECURE_PROXY_SSL_HEADER:
        header, secure = settings.SECURE_PROXY_SSL_HEADER
        name = header.removeprefix("HTTP_").replace("_", "-").lower().encode()
        told = [value for each, value in scope["headers"] if each.lower() == name]
        if told:
            return "https" if told[0].decode("latin-1").split(",")[0].strip() == secure else "http"
    return "https" if scope.get("scheme") in ("wss", "https") else "http"


def _full(scheme: str, host: str) -> tuple[str, str, str]:
    domain, port = split_domain_port(host)
    return scheme, domain, port or _PORTS[scheme]


def _is_trusted(origin: str, scheme: str, host: str, port: int | None) -> bool:
    """As Django's CSRF check reads CSRF_TRUSTED_ORIGINS, where `https://*.example.org` stands for subdomains."""
    for each in settings.CSRF_TRUSTED_ORIGINS:
        trusted = urlsplit(each.lower())
        if "*" not in each:
            if _full(trusted.scheme, trusted.netloc) == _full(scheme, origin.partition("://")[2]):
                return True
        elif trusted.scheme == scheme and is_same_domain(origin.partition("://")[2], trusted.netloc.lstrip("*")):
            return True
    return False
