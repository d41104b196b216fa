"""Requests to a server with the token of its user; and what a server says that does not let us in."""

import asyncio
from secrets import token_urlsafe
from typing import Any, Final
from uuid import UUID

import httpx2
from django.core.exceptions import ImproperlyConfigured

from memory.pool import DATABASE_AWAY
from memory.text import clean, clip
from tools.mcp import loop, tokens
from tools.mcp.failures import SignInFailed
from tools.mcp.scopes import fitting

NOT_LET_IN: Final = -32_401
"""The code of the error that stands for a refusal: the SDK knows of no status, and one that were raised would break the
connection off for all calls on it."""
_OURS: Final = token_urlsafe(32)
"""What the data of such an error begins with. A server may send the code; this it cannot know."""
NEEDED: Final = (
    "The server lets nobody in without a sign-in or credentials that hold. The user has to see to that under Settings, "
    "MCP servers."
)
TOO_LITTLE: Final = (
    "The server wants more rights than its user has given at the sign-in. The user can sign in again under Settings, "
    "MCP servers."
)
LONGEST_CHALLENGE: Final = 4_000


def is_refusal(error: BaseException) -> bool:
    """Whether a request was not let in, so that nothing of it was done: as we say, and not the server."""
    from mcp import MCPError

    if not isinstance(error, MCPError) or error.code != NOT_LET_IN:
        return False
    return isinstance(error.data, list) and error.data[:1] == [_OURS]


def challenge_of(error: BaseException) -> str | None:
    """Where a server that asks for a sign-in has said to sign in (WWW-Authenticate); may be empty. None: it is another
    error."""
    from mcp import MCPError

    if not is_refusal(error):
        return None
    assert isinstance(error, MCPError)
    challenge: str | None = error.data[1]
    return challenge


class Bearer(httpx2.AsyncBaseTransport):
    """Adds the token of a sign-in, if there is one, and makes an error of the protocol of what is refused (401)."""

    def __init__(self, below: httpx2.AsyncBaseTransport, grant: UUID | None) -> None:
        self._below = below
        self._grant = grant
        # One asks; the others find what it has brought.
        self._lock = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._grant is None:
            answer = await self._below.handle_async_request(request)
            return await _asked_to_sign_in(answer) if answer.status_code == 401 else answer
        try:
            return await self._as_user(request, self._grant)
        except DATABASE_AWAY:
            return _refusal("The sign-in at this server cannot be looked up at the moment.", None)
        except (SignInFailed, TimeoutError, ImproperlyConfigured) as failed:
            return _refusal(f"The sign-in at this server could not be renewed. {failed}", None)

    async def aclose(self) -> None:
        await self._below.aclose()

    async def _as_user(self, request: httpx2.Request, grant: UUID) -> httpx2.Response:
        """A token that is refused is refreshed once. Without one nothing is sent: it would be done for nobody."""
        refused = ""
        while True:
            async with self._lock:
                token = await tokens.access_token(grant, refused)
            if not token:
                return _refusal(NEEDED, "")
            request.headers["Authorization"] = f"Bearer {token}"
            answer = await self._below.handle_async_request(request)
            if answer.status_code == 403 and (scope := _wanted(answer)):
                await answer.aclose()
                await loop.in_database(tokens.widen, grant, scope)
                return _refusal(TOO_LITTLE, None)
            if answer.status_code != 401:
                return answer
            if refused:
                await loop.in_database(tokens.lose, grant, token)
                return await _asked_to_sign_in(answer)
            await answer.aclose()
            refused = token


async def _asked_to_sign_in(answer: httpx2.Response) -> httpx2.Response:
    await answer.aclose()
    return _refusal(NEEDED, clip(clean(", ".join(answer.headers.get_list("WWW-Authenticate"))), LONGEST_CHALLENGE))


def _wanted(answer: httpx2.Response) -> str:
    """The rights that are missing, where that is why something is refused (RFC 6750, 3.1)."""
    from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

    if extract_field_from_www_auth(answer, "error") != "insufficient_scope":
        return ""
    return fitting(clean(extract_scope_from_www_auth(answer) or ""))


def _refusal(words: str, challenge: str | None) -> httpx2.Response:
    error: dict[str, Any] = {"code": NOT_LET_IN, "message": words, "data": [_OURS, challenge]}
    return httpx2.Response(401, json={"jsonrpc": "2.0", "id": None, "error": error})
