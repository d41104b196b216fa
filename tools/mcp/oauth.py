"""OAuth with an authorization server, as the protocol wants it (2025-11-25, "Authorization"): what is asked of it, one
question a function. The values and rules are the SDK's. Its own `OAuthClientProvider` waits, within one request, until
somebody has signed in; ours come back in a request of their own, perhaps to another process.

No answer is repeated in an error: it may hold a secret.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import orjson
from mcp.client.auth import OAuthFlowError, PKCEParameters
from mcp.client.auth.oauth2 import OAuthContext, check_registration_usable
from mcp.client.auth.utils import create_client_registration_request, handle_registration_response
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.auth_utils import calculate_token_expiry
from pydantic import AnyUrl, BaseModel, ValidationError

from tools.mcp.discovery import Found, kept, open_client
from tools.mcp.failures import GrantRefused, SignInFailed

METHODS: Final = ("client_secret_basic", "client_secret_post", "none")
"""How we may say who we are, the best first."""
TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8000}")
# What an authorization server may answer (RFC 6749, 7591), and nothing else of its words is shown.
KNOWN_ERRORS: Final = frozenset(
    {
        *("access_denied", "invalid_client", "invalid_client_metadata", "invalid_grant", "invalid_redirect_uri"),
        *("invalid_request", "invalid_scope", "invalid_target", "server_error", "temporarily_unavailable"),
        *("unauthorized_client", "unsupported_grant_type", "unsupported_response_type"),
    }
)


FINAL: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""After which asking again is of no use: what was shown, or we, are not known any more."""


class Tokens(BaseModel):
    """expires_at: seconds since 1970; None: nobody knows."""

    access: str
    refresh: str | None
    expires_at: float | None


async def register(found: Found, redirect_uri: str) -> OAuthClientInformationFull:
    """Make ourselves known to an authorization server that knows nobody (RFC 7591). Raises: SignInFailed."""
    assert found.server.registration_endpoint is not None
    offered = found.server.token_endpoint_auth_methods_supported or []
    us = OAuthClientMetadata(
        client_name="Waymark",
        redirect_uris=[AnyUrl(redirect_uri)],
        scope=found.scope or None,
        token_endpoint_auth_method=next((method for method in METHODS if method in offered), None),
        application_type="web" if redirect_uri.startswith("https:") else "native",
    )
    async with open_client() as client:
        answer = await client.send(create_client_registration_request(found.server, us, ""))
        try:
            known = await handle_registration_response(answer)
            check_registration_usable(known)
        except OAuthFlowError:
            raise SignInFailed(f"The authorization server does not register us{_code(answer)}.") from None
    return kept(known)


def named(found: Found, client_id: str, secret: str, redirect_uri: str) -> OAuthClientInformationFull:
    """Us, as a user has registered us themselves."""
    offered = found.server.token_endpoint_auth_methods_supported or METHODS
    return OAuthClientInformationFull(
        client_id=client_id,
        client_secret=secret or None,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method=next((m for m in METHODS if m in offered), METHODS[0]) if secret else "none",
    )


def authorization_url(
    found: Found, client: OAuthClientInformationFull, pkce: PKCEParameters, state: str, redirect_uri: str
) -> str:
    """Where the user's browser goes."""
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": found.resource,
    }
    if found.scope:
        asked["scope"] = found.scope
    if "offline_access" in found.scope.split():
        asked["prompt"] = "consent"  # OpenID Connect gives no refresh token otherwise
    return str(httpx2.URL(str(found.server.authorization_endpoint)).copy_merge_params(asked))


async def redeem(
    found: Found, client: OAuthClientInformationFull, code: str, verifier: str, redirect_uri: str
) -> Tokens:
    """Tokens for the code with which somebody came back. Raises: SignInFailed."""
    grant = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
    return await _tokens(found, client, {**grant, "redirect_uri": redirect_uri}, None)


async def refresh(found: Found, client: OAuthClientInformationFull, token: str) -> Tokens:
    """New tokens for a refresh token, which may be used up by it.

    Raises:
        GrantRefused: it is not taken any more.
        SignInFailed: nobody knows.
    """
    return await _tokens(found, client, {"grant_type": "refresh_token", "refresh_token": token}, token)


async def revoke(found: Found, client: OAuthClientInformationFull, tokens: Tokens) -> None:
    """Give tokens back (RFC 7009), where that can be done. Raises: SignInFailed."""
    if found.server.revocation_endpoint is None:
        return
    kind = "refresh_token" if tokens.refresh else "access_token"
    said = {"token": tokens.refresh or tokens.access, "token_type_hint": kind}
    await _post(str(found.server.revocation_endpoint), client, said)


async def _tokens(
    found: Found, client: OAuthClientInformationFull, grant: Mapping[str, str], refreshed: str | None
) -> Tokens:
    answer = await _post(str(found.server.token_endpoint), client, {**grant, "resource": found.resource})
    try:
        token = OAuthToken.model_validate_json(answer.content)
    except ValidationError:
        raise SignInFailed("The authorization server gave an answer that is none.") from None
    if not all(TOKEN.fullmatch(each) for each in (token.access_token, token.refresh_token or "none")):
        raise SignInFailed("The authorization server gave a token that is none.")
    until = None if token.expires_in is None else calculate_token_expiry(token.expires_in)
    return Tokens(access=token.access_token, refresh=token.refresh_token or refreshed, expires_at=until)


async def _post(url: str, us: OAuthClientInformationFull, said: Mapping[str, str]) -> httpx2.Response:
    """Raises: GrantRefused, SignInFailed: the answer is not 200."""
    data, headers = _with_client(us, {**said, "client_id": us.client_id})
    async with open_client() as client:
        answer = await client.post(url, data=data, headers=headers)
    if answer.status_code in (200, 201):
        return answer
    if answer.status_code < 500 and _error(answer) in FINAL:
        raise GrantRefused(f"The authorization server refuses it{_code(answer)}.")
    raise SignInFailed(f"The authorization server does not answer as it should{_code(answer)}.")


def _with_client(us: OAuthClientInformationFull, data: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The SDK's way of saying who we are, which needs nothing else of its context."""
    nothing: Any = None
    return OAuthContext("", nothing, nothing, None, None, client_info=us).prepare_token_auth(data, {})


def _code(answer: httpx2.Response) -> str:
    """Which of the known errors it is, in brackets."""
    return f" ({_error(answer) or answer.status_code})"


def _error(answer: httpx2.Response) -> str:
    """The code of a known error; empty when it says none, as what stands before an authorization server may."""
    try:
        said = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return ""
    code = said.get("error") if isinstance(said, dict) else None
    return code if isinstance(code, str) and code in KNOWN_ERRORS else ""
