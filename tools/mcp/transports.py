"""How a server is reached, and what is made of its words before the SDK checks them."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

import orjson
import structlog
from django.conf import settings
from django.db.models.functions import Now

from memory.pool import DATABASE_AWAY, orm
from memory.secrets import unseal
from tools.mcp import stdio
from tools.mcp.bearer import Bearer
from tools.mcp.definitions import mended
from tools.mcp.models import McpServer, McpSignIn, Transport
from tools.mcp.programs import may_start
from tools.mcp.streams import CallsOnly

if TYPE_CHECKING:
    from mcp import Client


log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Target:
    """Where a server is, as its row says, and by which sign-in. Two that are equal are the same connection."""

    server_id: UUID
    name: str
    transport: str
    url: str
    argv: tuple[str, ...]
    sealed_headers: str
    grant: UUID | None = None


def target_of(row: McpServer) -> Target:
    """With the grant also when its tokens are lost: what was done for its user is done for nobody else, nor with the
    headers of before. It goes when they sign out."""
    sign_in: McpSignIn | None = getattr(row, "sign_in", None)
    grant = sign_in.grant if sign_in else None
    return Target(row.pk, row.name, row.transport, row.url, tuple(row.argv), row.sealed_headers, grant)


def usable_now(server_ids: Iterable[UUID]) -> dict[UUID, Target]:
    """Where those of some servers are that may be connected to: they are there and on, and their program may be
    started."""
    rows = McpServer.objects.filter(pk__in=server_ids, enabled=True, user__is_active=True)
    found = rows.select_related("user", "sign_in").defer("seen", "accepted", "said")
    return {row.pk: target_of(row) for row in found if row.transport == Transport.HTTP or may_start(row.user, row.argv)}


@asynccontextmanager
async def client_of(target: Target) -> AsyncIterator["Client"]:
    """A client that has greeted its server.

    Raises: whatever the SDK and the network raise; tools.safe_fetch.FetchRefused, tools.addresses.AddressRefused,
    stdio.NotStartable.
    """
    from mcp import Client
    from mcp_types import Implementation

    info = Implementation(name="waymark", version=settings.VERSION)
    async with AsyncExitStack() as stack:
        transport = (
            _http(target)
            if target.transport == Transport.HTTP
            else stdio.started(target.argv, partial(_keep, target.server_id))
        )
        client = Client(
            _Mending(transport),
            client_info=info,
            cache=None,
            read_timeout_seconds=settings.WAYMARK_MCP_SECONDS,
        )
        yield await stack.enter_async_context(client)


@asynccontextmanager
async def _http(target: Target) -> AsyncIterator[tuple[Any, Any]]:
    from mcp.client.streamable_http import streamable_http_client

    from tools.mcp import network

    await network.check(target.url)
    headers = orjson.loads(unseal(target.sealed_headers) or "{}")

    def around(checked: network.Checked) -> Bearer:
        return Bearer(CallsOnly(checked), target.grant)

    async with (
        network.client(headers, settings.WAYMARK_MCP_SECONDS, around) as client,
        streamable_http_client(target.url, http_client=client) as streams,
    ):
        yield streams


def _keep(server_id: UUID, said: str) -> None:
    """Store what a program has said, for whoever looks at the server's page; in a thread of its own."""
    try:
        with orm():
            McpServer.objects.filter(pk=server_id).update(said=said, said_at=Now())
    except DATABASE_AWAY:
        log.info("what a program said was not kept", server=str(server_id))


class _Mending:
    """A transport whose listings are mended, so that one tool that is wrong does not cost all of them."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._transport.__aenter__()
        return _Mended(read), write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        done: bool | None = await self._transport.__aexit__(kind, error, trace)
        return done


class _Mended:
    """What a server says, line by line."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def receive(self) -> Any:
        return _mend(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return _mend(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> Any:
        return await self._stream.__aexit__(*how)


def _mend(said: Any) -> Any:
    result = getattr(getattr(said, "message", None), "result", None)
    if isinstance(result, dict) and isinstance(result.get("tools"), list):
        result["tools"] = [fit for tool in result["tools"] if (fit := mended(tool)) is not None]
    return said
