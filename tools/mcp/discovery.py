"""Where one signs in to a server, by what it and its authorization server say (RFC 9728, 8414).

Every address comes from strangers, so each is opened as `tools.mcp.network` has it and must be https, but for hosts
that the operator has named (threat T9). No redirect is followed.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from django.conf import settings
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    issuers_match,
)
from mcp.shared.auth import DEFAULT_GRANT_TYPES, OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import BaseModel

from memory.text import clean_json
from tools.addresses import AddressRefused
from tools.mcp import network
from tools.mcp.failures import SignInFailed
from tools.safe_fetch import FetchRefused, parsed, place_of, private_places

LONGEST: Final = 20_000
"""Of what is kept of a server or of us, as JSON, in characters."""


class Found(BaseModel):
    """Where and for what to sign in. resource: the server, as tokens are to be made out for it (RFC 8707). for_calls:
    only calls want it, so that a look without one says nothing."""

    resource: str
    scope: str
    server: OAuthMetadata
    for_calls: bool = False

    @property
    def issuer(self) -> str:
        return str(self.server.issuer)


async def discover(url: str, challenge: str) -> Found | None:
    """Ask a server that has refused us where to sign in; None when it does not say (RFC 9728, 8414).

    Args:
        challenge: its WWW-Authenticate; may be empty.

    Raises:
        SignInFailed: it says something that may not be followed, or is not true.
    """
    check(url)
    refusal = httpx2.Response(401, headers=[(b"www-authenticate", challenge.encode(errors="replace"))])
    async with open_client() as client:
        resource = await _resource(client, url, extract_resource_metadata_from_www_auth(refusal))
        server = await _server(client, url, str(resource.authorization_servers[0]) if resource else None)
    if server is None:
        return None
    scope = get_client_metadata_scopes(extract_scope_from_www_auth(refusal), resource, server, [*DEFAULT_GRANT_TYPES])
    return kept(
        Found(
            resource=str(resource.resource) if resource else resource_url_from_server_url(url),
            scope=scope or "",
            server=server.model_copy(update={"scopes_supported": None}),  # of which some have hundreds
        )
    )


async def _resource(client: httpx2.AsyncClient, url: str, said: str | None) -> ProtectedResourceMetadata | None:
    """What a server says of who lets people in; None: nothing."""
    for place in build_protected_resource_metadata_discovery_urls(said, url):
        answer = await _asked(client, place)
        found = await handle_protected_resource_response(answer)
        if found is not None:
            if not _is_of(url, str(found.resource), place):
                raise SignInFailed("The server says that one signs in for another server than itself.")
            return found
        if answer.status_code >= 500 or answer.status_code == 429:  # that is no word about whether there is one
            raise SignInFailed("The server does not say at the moment where to sign in.")
    return None


def _is_of(url: str, resource: str, place: str) -> bool:
    """Whether what stands at a place may be of a server: it is said of that itself or, where a whole host is meant, by
    the host and not by one of those that share it (RFC 9728, 3.3)."""
    here = resource_url_from_server_url(url)
    if resource.rstrip("/") == here.rstrip("/"):
        return True
    usual, *_ = build_protected_resource_metadata_discovery_urls(None, resource)
    return place == usual and check_resource_allowed(here, resource)


async def _server(client: httpx2.AsyncClient, url: str, issuer: str | None) -> OAuthMetadata | None:
    """What an authorization server says of itself; without one, what a server says that is its own (2025-03-26)."""
    for place in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        goes_on, found = await handle_auth_metadata_response(await _asked(client, place))
        if not goes_on:
            raise SignInFailed("The authorization server does not answer at the moment.")
        if found is not None:
            if not issuers_match(str(found.issuer), issuer or str(httpx2.URL(url).copy_with(raw_path=b"/"))):
                raise SignInFailed("The authorization server says that it is another one.")
            await _check_server(found)
            return found
    if issuer is not None:
        raise SignInFailed("The authorization server does not say how to sign in.")
    return None


async def _check_server(server: OAuthMetadata) -> None:
    _check_mix_up(server)
    if "S256" not in (server.code_challenge_methods_supported or ()):
        raise SignInFailed("The authorization server does not protect sign-ins (PKCE), so nobody is sent there.")
    ends = (server.authorization_endpoint, server.token_endpoint, server.registration_endpoint)
    for end in (*ends, server.revocation_endpoint):
        if end is not None:
            check(str(end))
    try:
        await network.check(str(server.authorization_endpoint))
    except (AddressRefused, OSError) as error:
        raise SignInFailed(f"Nobody is sent to where the server wants people to sign in: {error}") from error


def _check_mix_up(server: OAuthMetadata) -> None:
    """What people are given at one place is handed to another only where the answer says whose it is, which `finish`
    then insists on: else a server could send them to an honest one and take their code (RFC 9700, 4.4)."""
    ends = (server.authorization_endpoint, server.token_endpoint)
    origins = {_origin(str(end)) for end in ends}
    if origins != {_origin(str(server.issuer))} and not server.authorization_response_iss_parameter_supported:
        raise SignInFailed(
            "The authorization server sends people, or what they come back with, to another host and does not say "
            "whose answer it is (RFC 9207), so nobody is sent there."
        )


def _origin(url: str) -> tuple[str, str, int | None]:
    address = httpx2.URL(url)
    return address.scheme, address.host, address.port


def kept[T: BaseModel](said: T) -> T:
    if len(said.model_dump_json()) > LONGEST:
        raise SignInFailed("The server says more of its sign-in than is read.")
    plain = said.model_dump(mode="json")
    if clean_json(plain) != plain:
        raise SignInFailed("The server says something of its sign-in that is no text.")
    return said


def check(url: str) -> None:
    """Raises: SignInFailed: what is said there could be read on its way."""
    try:
        address = parsed(url)
    except FetchRefused as refused:
        raise SignInFailed(str(refused)) from refused
    if address.scheme != "https" and place_of(address) not in private_places():
        raise SignInFailed("One signs in over https:// only.")


async def _asked(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    check(url)
    return await client.send(create_oauth_metadata_request(url))


@asynccontextmanager
async def open_client() -> AsyncIterator[httpx2.AsyncClient]:
    """Raises: SignInFailed: for whatever the network raises, and when everything together takes too long."""
    seconds = settings.WAYMARK_FETCH_SECONDS
    try:
        async with asyncio.timeout(seconds), network.client({"Accept": "application/json"}, seconds) as client:
            yield client
    except TimeoutError:
        raise SignInFailed(f"Signing in took longer than {seconds:g} seconds.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SignInFailed(f"The way to sign in cannot be reached: {error}") from None
