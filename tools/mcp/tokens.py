"""The tokens with which a server is called for its user: refreshed when they are over, by one for all workers."""

import time
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from memory.secrets import seal, unseal
from tools.mcp import loop
from tools.mcp.failures import GrantRefused
from tools.mcp.models import McpSignIn
from tools.mcp.scopes import fitting

if TYPE_CHECKING:
    from tools.mcp.oauth import Tokens

log = structlog.get_logger(__name__)

EARLY_SECONDS: Final = 30
"""So long before its end a token is not used any more: clocks differ, and calls take their time."""
MARGIN_SECONDS: Final = 5.0


def access_token(grant: UUID, refused: str = "") -> str:
    """The token of a sign-in, which may have to be refreshed. Whoever comes meanwhile waits for the row, and finds the
    new one: a refresh token is good for once. Empty: its user has signed out, or has to sign in again.

    Args:
        refused: a token that its server does not take.

    Raises:
        SignInFailed: the authorization server cannot be asked just now.
    """
    tokens = _kept(McpSignIn.objects.filter(grant=grant).first())
    if tokens is None or _is_good(tokens, refused):
        return tokens.access if tokens else ""
    with transaction.atomic():
        row = McpSignIn.objects.select_for_update().filter(grant=grant).first()
        tokens = _kept(row)
        if row is None or tokens is None:
            return ""
        return tokens.access if _is_good(tokens, refused) else _refreshed(row, tokens)


def lose(grant: UUID, token: str) -> None:
    """A server does not take a token that was made for it just now: its user has to sign in again."""
    with transaction.atomic():
        row = McpSignIn.objects.select_for_update().filter(grant=grant).first()
        tokens = _kept(row)
        if row is not None and tokens is not None and tokens.access == token:
            _clear(row)


def widen(grant: UUID, scope: str) -> None:
    """A server wants more rights: they are asked for beside the others at the next sign-in."""
    from mcp.client.auth.utils import union_scopes

    with transaction.atomic():
        row = McpSignIn.objects.select_for_update().filter(grant=grant).first()
        if row is not None:
            row.found["scope"] = fitting(union_scopes(row.found["scope"], scope) or "")
            row.save(update_fields=["found"])


def _kept(row: McpSignIn | None) -> "Tokens | None":
    from tools.mcp.oauth import Tokens

    return Tokens.model_validate_json(unseal(row.sealed_tokens)) if row and row.sealed_tokens else None


def _is_good(tokens: "Tokens", refused: str) -> bool:
    is_over = tokens.expires_at is not None and time.time() > tokens.expires_at - EARLY_SECONDS
    return not is_over and tokens.access != refused


def _refreshed(row: McpSignIn, tokens: "Tokens") -> str:
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp import oauth
    from tools.mcp.discovery import Found

    if tokens.refresh is None:
        return _clear(row)
    client = OAuthClientInformationFull.model_validate_json(unseal(row.sealed_client))
    asked = loop.submit(oauth.refresh(Found.model_validate(row.found), client, tokens.refresh))
    try:
        new = asked.result(settings.WAYMARK_FETCH_SECONDS + MARGIN_SECONDS)
    except GrantRefused as refused:
        log.info("mcp sign-in is over", server=str(row.server_id), error=str(refused))
        return _clear(row)
    row.sealed_tokens = seal(new.model_dump_json())
    row.save(update_fields=["sealed_tokens"])
    return new.access


def _clear(row: McpSignIn) -> str:
    row.sealed_tokens = ""
    row.save(update_fields=["sealed_tokens"])
    return ""
