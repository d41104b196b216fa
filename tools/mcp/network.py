"""The way to MCP servers over HTTP: the rule of `tools.safe_fetch` for connections that stay (threat T9)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final

import httpcore2
import httpx2
from django.conf import settings

from tools import tls
from tools.addresses import AddressRefused, check_global, check_port
from tools.mcp import loop
from tools.safe_fetch import parsed, place_of, private_places
from tools.visiting import CONNECT_SECONDS

LOOK_UP_SECONDS: Final = 5.0
MOST_CONNECTIONS: Final = 20


def client(
    headers: Mapping[str, str], seconds: float, around: Callable[["Checked"], httpx2.AsyncBaseTransport] | None = None
) -> httpx2.AsyncClient:
    """A client that connects to nothing but what was looked up and checked, and reads no more than is allowed.

    Args:
        seconds: that an answer may stay silent.
        around: what its requests go through before.
    """
    timeout = httpx2.Timeout(CONNECT_SECONDS + LOOK_UP_SECONDS, read=seconds)
    said = {"User-Agent": f"Waymark/{settings.VERSION}", **headers, "Accept-Encoding": "identity"}
    transport = around(Checked()) if around else Checked()
    return httpx2.AsyncClient(headers=said, timeout=timeout, transport=transport, trust_env=False)


async def check(url: str) -> None:
    """Raises: FetchRefused, AddressRefused: it may not be opened; OSError: it leads nowhere."""
    await _places(*place_of(parsed(url)))


async def _places(host: str, port: int) -> list[str]:
    """Where a host is, in figures, when all of that may be opened."""
    is_inside = (host, port) in private_places()
    if not is_inside:
        check_port(port)
    try:
        found = await asyncio.wait_for(loop.look_up(host, port), LOOK_UP_SECONDS)
    except TimeoutError:
        raise OSError(f"{host} was not found within {LOOK_UP_SECONDS:g} seconds") from None
    except UnicodeError:
        raise OSError("it is no name") from None
    figures = [str(place[4][0]) for place in found]
    if not is_inside:
        check_global(host, figures)
    return figures


class _Backend(httpcore2.AsyncNetworkBackend):
    """Connects to where a host was found to be, if that may be opened."""

    def __init__(self) -> None:
        self._below = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the interface of httpcore2)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        error: Exception = httpcore2.ConnectError(f"{host} has no address")
        try:
            places = await _places(host, port)
        except (AddressRefused, OSError) as refused:
            raise httpcore2.ConnectError(str(refused)) from refused
        for figures in places:
            try:
                return await self._below.connect_tcp(figures, port, CONNECT_SECONDS, None, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as failed:
                error = failed
        raise error

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, as far as it may be read."""

    def __init__(self, body: Any, most: int) -> None:
        self._body = body
        self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._body:
                self._left -= len(piece)
                if self._left < 0:
                    raise httpx2.ReadError("The answer is longer than is read.")
                yield piece
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._body.aclose()


class Checked(httpx2.AsyncBaseTransport):
    """The way to what was checked."""

    def __init__(self) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            tls.ssl_context(), max_connections=MOST_CONNECTIONS, network_backend=_Backend()
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(asked)
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
            raise httpx2.ConnectError(str(error)) from error
        if any(name.lower() == b"content-encoding" for name, _value in answer.headers):
            with contextlib.suppress(Exception):
                await answer.aclose()
            raise httpx2.ReadError("The answer is packed, for which was not asked.")
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream, settings.WAYMARK_MCP_BYTES),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()
