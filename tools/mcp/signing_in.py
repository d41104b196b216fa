"""Signing in to a server, in two requests (mission D6): `begin` says where the browser goes, `finish` takes what it
comes back with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

import orjson
import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.models import TextChoices
from django.db.models.functions import Now
from pydantic import AnyUrl

from memory.ids import new_id
from memory.secrets import seal, unseal
from memory.text import clip
from tools.cancel import CancelToken
from tools.mcp import loop, sessions
from tools.mcp.failures import SignInFailed
from tools.mcp.models import McpServer, McpSignIn
from tools.mcp.tokens import give_back

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp.discovery import Found

log = structlog.get_logger(__name__)

MINUTES: Final = 10
"""So long somebody may take to sign in."""
OVER: Final = "This sign-in took too long, or was not begun here. Begin it again."


TOO_LONG: Final = "It took too long."
KEY_GONE: Final = (
    "What is kept of this sign-in cannot be read or written: the operator has to set WAYMARK_FIELD_KEYS. Sign in again "
    "after that."
)


class State(TextChoices):
    """How a server stands with signing in."""

    NONE = "none"
    NEEDED = "needed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Us:
    """What may be said of us to an authorization server.

    redirect_uri: where it sends browsers back to. document: where that and more stands, for those that read it there
    (client id metadata document), over https; empty: nowhere. client_id, secret: as whom its user has
    registered us; empty: as last time.
    """

    redirect_uri: str
    document: str = ""
    client_id: str = ""
    secret: str = ""


def state_of(server: McpServer) -> State:
    row: McpSignIn | None = getattr(server, "sign_in", None)
    if row is None:
        return State.NONE
    return State.DONE if row.is_done else State.NEEDED


def look_for(server: McpServer, challenge: str, *, for_calls: bool = False) -> str:
    """Find out where one signs in to a server that lets nobody in, or only look, and keep it. Returns why it cannot be
    done, for people; empty when it can."""
    from tools.mcp.discovery import discover

    try:
        found = loop.ask(discover(server.url, challenge), _seconds(), CancelToken())
    except (SignInFailed, TimeoutError) as failed:
        return clip(f"The server wants a sign-in, which is not possible. {str(failed) or TOO_LONG}", 500)
    if found is None and McpSignIn.objects.filter(server=server).exclude(signed_in_at=None).exists():
        return ""  # we have not asked the server, and know where one signs in
    if found is None:
        return "The server does not let us in (401): it wants credentials, such as a header."
    _keep(server, found.model_copy(update={"for_calls": for_calls}))
    return ""


def end_when_not_wanted(server: McpServer) -> None:
    """A server has just let us look as nobody: its sign-in is over, unless it is for calls. In a transaction."""
    if state_of(server) is State.NEEDED and not server.sign_in.found.get("for_calls"):
        forget(server)


@contextmanager
def _in_words() -> Iterator[None]:
    """Raises: SignInFailed: for what else may go wrong on the way."""
    try:
        yield
    except TimeoutError:
        raise SignInFailed(TOO_LONG) from None
    except ImproperlyConfigured:
        raise SignInFailed(KEY_GONE) from None


@_in_words()
def begin(server: McpServer, us: Us) -> str:
    """Prepare a sign-in, and return where its user's browser has to go. One that was begun before is over.

    Raises:
        SignInFailed: it cannot be begun.
    """
    from mcp.client.auth import PKCEParameters

    from tools.mcp import oauth
    from tools.mcp.discovery import Found

    row = McpSignIn.objects.filter(server=server).first()
    if row is None:
        raise SignInFailed("The server has not asked for a sign-in. Test it.")
    found = Found.model_validate(row.found)
    client = _client(row, found, us)
    pkce, state = PKCEParameters.generate(), token_urlsafe(32)
    begun = {"verifier": pkce.code_verifier, "redirect_uri": us.redirect_uri, "client": client.model_dump_json()}
    kept = McpSignIn.objects.filter(pk=row.pk, found=row.found).update(
        state=_digest(state),
        state_until=Now() + timedelta(minutes=MINUTES),
        sealed_begun=seal(orjson.dumps(begun).decode()),
    )
    if not kept:
        raise SignInFailed(OVER)
    return oauth.authorization_url(found, client, pkce, state, us.redirect_uri)


@_in_words()
def finish(user: User, state: str, code: str, issuer: str | None, error: str) -> McpServer:
    """Take what a browser came back with: tokens for its code, once.

    Args:
        issuer: who says that it sends it (RFC 9207); None: it does not say.
        error: what it says instead of a code; may be empty.

    Raises:
        SignInFailed: nobody is signed in by it.
    """
    from mcp.client.auth import OAuthFlowError
    from mcp.client.auth.utils import validate_authorization_response_iss
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp import oauth
    from tools.mcp.discovery import Found

    row, begun = _taken(user, state)
    found, client = Found.model_validate(row.found), begun["client"]
    try:
        validate_authorization_response_iss(issuer, found.server)
    except OAuthFlowError:
        raise SignInFailed("The answer comes from another server than the one at which you signed in.") from None
    if error or not code:
        known = f" ({error})" if error in oauth.KNOWN_ERRORS else ""
        raise SignInFailed(f"The authorization server did not sign you in{known}.")
    us = OAuthClientInformationFull.model_validate_json(client)
    asked = oauth.redeem(found, us, code, begun["verifier"], begun["redirect_uri"])
    tokens = loop.ask(asked, _seconds(), CancelToken())
    kept = McpSignIn.objects.filter(pk=row.pk, found=row.found).update(
        sealed_client=seal(client),
        sealed_tokens=seal(tokens.model_dump_json()),
        grant=new_id(),
        signed_in_at=Now(),
        refreshing_until=None,
    )
    if not kept:
        loop.submit(give_back(found, us, tokens, row.host))
        raise SignInFailed(OVER)
    sessions.forget(row.server_id)
    return McpServer.objects.select_related("user").get(pk=row.server_id)


def sign_out(server: McpServer) -> None:
    """Forget the tokens, and have the authorization server forget them, too, if it can."""
    with transaction.atomic():
        row = McpSignIn.objects.select_for_update().filter(server=server).first()
        if row is None:
            return
        _revoke(row)
        row.sealed_tokens, row.grant, row.signed_in_at, row.state, row.sealed_begun = "", None, None, "", ""
        row.refreshing_until = None
        row.save()
    sessions.forget(server.pk)


def forget(server: McpServer) -> None:
    """Sign out, and know nothing of signing in any more. In a transaction."""
    row = McpSignIn.objects.select_for_update().filter(server=server).first()
    if row is not None:
        _revoke(row)
        row.delete()


def _keep(server: McpServer, found: "Found") -> None:
    """What was found of a server, unless its address was changed meanwhile. Who we are to one authorization server is
    nothing for another."""
    with transaction.atomic():
        if McpServer.objects.select_for_update(no_key=True).filter(pk=server.pk, url=server.url).first() is None:
            return
        row = McpSignIn.objects.select_for_update().filter(server=server).first()
        said = found.model_dump(mode="json", exclude_none=True)
        if row is None:
            McpSignIn.objects.create(server=server, found=said)
            return
        if row.found["server"]["issuer"] != found.issuer:  # the grant stays: nobody is called in its place
            _revoke(row)
            row.sealed_client, row.sealed_tokens, row.state, row.sealed_begun = "", "", "", ""
        if not row.is_done:
            row.found = said
            row.save()


def _client(row: McpSignIn, found: "Found", us: Us) -> "OAuthClientInformationFull":
    """As whom we sign in: registered anew each time, because who was once may be forgotten, which nobody would tell."""
    from mcp.client.auth.utils import create_client_info_from_metadata_url, should_use_client_metadata_url
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp import oauth

    if not row.needs_client:
        return loop.ask(oauth.register(found, us.redirect_uri), _seconds(), CancelToken())
    if us.client_id:
        return oauth.named(found, us.client_id, us.secret, us.redirect_uri)
    if row.sealed_client:
        return OAuthClientInformationFull.model_validate_json(unseal(row.sealed_client))
    if should_use_client_metadata_url(found.server, us.document):
        return create_client_info_from_metadata_url(us.document, [AnyUrl(us.redirect_uri)])
    raise SignInFailed(f"{row.host} must be told of Waymark first. Which client id did it give you?", "client_id")


def _taken(user: User, state: str) -> tuple[McpSignIn, dict[str, str]]:
    """The sign-in that a state is of, which is used up by it."""
    with transaction.atomic():
        rows = McpSignIn.objects.for_user(user).select_for_update(of=("self",)).select_related("server__user")
        row = rows.filter(state=_digest(state), state_until__gt=Now()).first()
        if row is None:
            raise SignInFailed(OVER)
        begun: dict[str, str] = orjson.loads(unseal(row.sealed_begun))
        row.state, row.sealed_begun = "", ""
        row.save(update_fields=["state", "sealed_begun"])
    return row, begun


def _revoke(row: McpSignIn) -> None:
    """Nobody waits for it: our part is done without."""
    from mcp.shared.auth import OAuthClientInformationFull

    from tools.mcp import oauth
    from tools.mcp.discovery import Found

    if not row.is_done:
        return
    found = Found.model_validate(row.found)
    try:
        client = OAuthClientInformationFull.model_validate_json(unseal(row.sealed_client))
        tokens = oauth.Tokens.model_validate_json(unseal(row.sealed_tokens))
    except ImproperlyConfigured:  # the key is gone, and with it the tokens
        return
    transaction.on_commit(lambda: loop.submit(give_back(found, client, tokens, row.host)))


def _digest(state: str) -> str:
    return sha256(state.encode(errors="replace")).hexdigest()


def _seconds() -> float:
    """For what takes WAYMARK_FETCH_SECONDS by its own clock, so that this one says why."""
    seconds: float = settings.WAYMARK_FETCH_SECONDS
    return seconds + 5.0
