"""The tokens with which a server is called for its user: refreshed when they are over, by one for all workers.

Nobody holds a row or a thread while an authorization server thinks: who refreshes has the lease of the row, and writes
back only what is still awaited (threat T16). On the loop of `tools.mcp.loop`.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID
from weakref import WeakValueDictionary

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memory.secrets import seal, unseal
from tools.mcp import loop
from tools.mcp.failures import GrantRefused, SignInFailed
from tools.mcp.models import McpSignIn
from tools.mcp.scopes import fitting

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp.discovery import Found
    from tools.mcp.oauth import Tokens

log = structlog.get_logger(__name__)

EARLY_SECONDS: Final = 30
"""So long before its end a token is not used any more: clocks differ, and calls take their time."""
MARGIN_SECONDS: Final = 10.0
"""That a lease is longer than an authorization server may think."""
LOOK_SECONDS: Final = 0.25
"""Between two looks whether another worker is done."""
REFRESHED_AT_ONCE: Final = 3
"""Of one user, in one process."""

_turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
_tasks: set[asyncio.Task[str | None]] = set()


@dataclass(frozen=True, slots=True)
class _Over:
    """Tokens that have to be refreshed. is_ours: nobody else may until the lease is over."""

    row: McpSignIn
    tokens: "Tokens"
    is_ours: bool = False


async def access_token(grant: UUID, refused: str = "") -> str:
    """The token of a sign-in, which may have to be refreshed. Whoever comes meanwhile waits, and finds the new one: a
    refresh token is good for once. Empty: its user has signed out, or has to sign in again.

    Args:
        refused: a token that its server does not take.

    Raises:
        SignInFailed: the authorization server cannot be asked just now.
    """
    found = await loop.in_database(_look, grant, refused)
    if isinstance(found, str):
        return found
    turn = _turns.setdefault(found.row.server.user_id, asyncio.Semaphore(REFRESHED_AT_ONCE))
    with suppress(TimeoutError):
        async with asyncio.timeout(2 * _lease_seconds()):
            while True:
                async with turn:
                    # Whoever gives up waiting does not give up the new tokens: the old ones are used up.
                    task = asyncio.create_task(_refreshed(grant, refused))
                    _tasks.add(task)
                    task.add_done_callback(_tasks.discard)
                    token = await asyncio.shield(task)
                if token is not None:
                    return token
                await asyncio.sleep(LOOK_SECONDS)
    raise SignInFailed("The authorization server takes too long.")


def lose(grant: UUID, token: str) -> None:
    """A server does not take a token that was made for it just now: its user has to sign in again."""
    row = McpSignIn.objects.filter(grant=grant).first()
    tokens = _kept(row)
    if row is not None and tokens is not None and tokens.access == token:
        _write(row, "")


def widen(grant: UUID, scope: str) -> None:
    """A server wants more rights: they are asked for beside the others at the next sign-in."""
    from mcp.client.auth.utils import union_scopes

    with transaction.atomic():
        row = McpSignIn.objects.select_for_update().filter(grant=grant).first()
        if row is not None:
            row.found["scope"] = fitting(union_scopes(row.found["scope"], scope) or "")
            row.save(update_fields=["found"])


async def give_back(found: "Found", client: "OAuthClientInformationFull", tokens: "Tokens", host: str) -> None:
    """Have an authorization server forget tokens, if it can; nobody waits for that."""
    from tools.mcp import oauth

    try:
        await oauth.revoke(found, client, tokens)
    except SignInFailed as failed:
        log.info("mcp tokens were not revoked", host=host, error=str(failed))


def _kept(row: McpSignIn | None) -> "Tokens | None":
    from tools.mcp.oauth import Tokens

    return Tokens.model_validate_json(unseal(row.sealed_tokens)) if row and row.sealed_tokens else None


def _is_good(tokens: "Tokens", refused: str) -> bool:
    is_over = tokens.expires_at is not None and time.time() > tokens.expires_at - EARLY_SECONDS
    return not is_over and tokens.access != refused


def _look(grant: UUID, refused: str) -> "str | _Over":
    row = McpSignIn.objects.select_related("server").filter(grant=grant).first()
    tokens = _kept(row)
    if row is None or tokens is None:
        return ""
    return tokens.access if _is_good(tokens, refused) else _Over(row, tokens)


def _claim(grant: UUID, refused: str) -> "str | _Over":
    """As `_look`, with the lease where nobody has it."""
    found = _look(grant, refused)
    if isinstance(found, str):
        return found
    free = Q(refreshing_until=None) | Q(refreshing_until__lt=Now())
    until = Now() + timedelta(seconds=_lease_seconds())
    is_ours = bool(_unchanged(found.row).filter(free).update(refreshing_until=until))
    return _Over(found.row, found.tokens, is_ours)


async def _refreshed(grant: UUID, refused: str) -> str | None:
    """None: somebody else refreshes."""
    found = await loop.in_database(_claim, grant, refused)
    if isinstance(found, str):
        return found
    return await _renew(found.row, found.tokens) if found.is_ours else None


async def _renew(row: McpSignIn, tokens: "Tokens") -> str:
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp import oauth
    from tools.mcp.discovery import Found

    if tokens.refresh is None:
        await loop.in_database(_write, row, "")
        return ""
    found = Found.model_validate(row.found)
    client = OAuthClientInformationFull.model_validate_json(unseal(row.sealed_client))
    try:
        new = await oauth.refresh(found, client, tokens.refresh)
    except GrantRefused as refused:
        log.info("mcp sign-in is over", server=str(row.server_id), error=str(refused))
        await loop.in_database(_write, row, "")
        return ""
    except BaseException:
        await loop.in_database(_write, row, row.sealed_tokens)
        raise
    if await loop.in_database(_write, row, seal(new.model_dump_json())):
        return new.access
    await give_back(found, client, new, row.host)  # its user has signed out meanwhile
    return ""


def _write(row: McpSignIn, sealed_tokens: str) -> bool:
    """Keep what has come instead of what was there, if that still is, and end the lease."""
    return bool(_unchanged(row).update(sealed_tokens=sealed_tokens, refreshing_until=None))


def _unchanged(row: McpSignIn) -> QuerySet[McpSignIn]:
    return McpSignIn.objects.filter(grant=row.grant, sealed_tokens=row.sealed_tokens)


def _lease_seconds() -> float:
    seconds: float = settings.WAYMARK_FETCH_SECONDS
    return seconds + MARGIN_SECONDS
