"""An authorization server on this machine, which refuses all that a real one would refuse (OAuth 2.1, RFC 7591, 7009,
8707, 9207), and signs everybody in who comes well."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener
from uuid import uuid4

import pytest

from tests.mcp_server import FakeMcp


class Refused(Exception):
    """With the code of an error."""


@dataclass
class Code:
    """What was asked for with it."""

    asked: dict[str, str]
    is_used: bool = False


@dataclass
class FakeOAuth:
    """resource: what it gives tokens for. clients: (secret, redirect URIs) by id. alive: access tokens that hold.
    refreshing: those with which new ones may be had, by their family. lifetime: of access tokens, in seconds.
    refusals: why somebody was refused, in order. asked: paths, in order. metadata: more of it, or instead.
    answer: instead of tokens. is_away: it answers nobody. refuses_with: status and body. slowness: how long it thinks,
    in seconds. revoked: somebody has given tokens back. goes_on: while it is not set, tokens are made and not sent."""

    address: str
    resource: str
    clients: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    codes: dict[str, Code] = field(default_factory=dict)
    alive: set[str] = field(default_factory=set)
    refreshing: dict[str, str] = field(default_factory=dict)
    spent: dict[str, str] = field(default_factory=dict)
    lifetime: int = 3600
    refusals: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    answer: Any = None
    is_away: bool = False
    refuses_with: tuple[int, Any] | None = None
    slowness: float = 0
    revoked: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def place(self) -> str:
        return urlsplit(self.address).netloc

    def document(self) -> dict[str, Any]:
        said = {
            "issuer": self.address,
            **{f"{name}_endpoint": f"{self.address}/{path}" for name, path in ENDS.items()},
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": ["read", "offline_access"],
        }
        return {name: value for name, value in {**said, **self.metadata}.items() if value is not None}

    def knows(self, method: str, authorization: str) -> bool:
        """For `FakeMcp.lets_in`."""
        return authorization.removeprefix("Bearer ") in self.alive

    def register(self, said: dict[str, Any]) -> dict[str, Any]:
        if not said.get("redirect_uris") or said.get("token_endpoint_auth_method") != "client_secret_basic":
            raise Refused("invalid_client_metadata")
        client_id, secret = f"client {uuid4().hex}", f"canary-secret:{uuid4().hex}"
        self.clients[client_id] = (secret, said["redirect_uris"])
        return {**said, "client_id": client_id, "client_secret": secret, "client_secret_expires_at": 0}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes back to."""
        _secret, redirects = self.clients.get(asked.get("client_id", ""), ("", []))
        if asked.get("redirect_uri") not in redirects:
            raise Refused("redirect_uri")
        is_well = asked.get("response_type") == "code" and asked.get("state") and asked.get("resource") == self.resource
        if not is_well or asked.get("code_challenge_method") != "S256" or len(asked.get("code_challenge", "")) != 43:
            raise Refused("invalid_request")
        code = f"canary-code-{uuid4().hex}"
        self.codes[code] = Code(asked)
        back = {"code": code, "state": asked["state"], "iss": self.address}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def token(self, asked: dict[str, str], client: str) -> dict[str, Any]:
        if asked.get("resource") != self.resource:
            raise Refused("invalid_target")
        if asked.get("grant_type") == "authorization_code":
            return self._redeemed(asked, client)
        if asked.get("grant_type") != "refresh_token":
            raise Refused("unsupported_grant_type")
        token = asked.get("refresh_token", "")
        if token in self.spent:  # somebody has stolen it: nobody of the family is believed any more
            self.refreshing = {key: family for key, family in self.refreshing.items() if family != self.spent[token]}
            raise Refused("invalid_grant: reused")
        if token not in self.refreshing:
            raise Refused("invalid_grant")
        self.spent[token] = family = self.refreshing.pop(token)
        return self._made(family)

    def _redeemed(self, asked: dict[str, str], client: str) -> dict[str, Any]:
        code = self.codes.get(asked.get("code", ""))
        if code is None or code.is_used:
            raise Refused("invalid_grant: code")
        code.is_used = True
        digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != code.asked["code_challenge"]:
            raise Refused("invalid_grant: verifier")
        if (client, asked.get("redirect_uri")) != (code.asked["client_id"], code.asked["redirect_uri"]):
            raise Refused("invalid_grant: client")
        return self._made(uuid4().hex)

    def _made(self, family: str) -> dict[str, Any]:
        access, refresh = f"canary-access-{uuid4().hex}", f"canary-refresh-{uuid4().hex}"
        self.alive.add(access)
        self.refreshing[refresh] = family
        made = {"access_token": access, "token_type": "bearer", "expires_in": self.lifetime, "refresh_token": refresh}
        return made if self.answer is None else self.answer

    def revoke(self, asked: dict[str, str]) -> dict[str, Any]:
        if self.refreshing.pop(asked["token"], None) is None:
            raise Refused("invalid_request")
        self.alive.clear()
        self.revoked.set()
        return {}


ENDS = {"authorization": "authorize", "token": "token", "registration": "register", "revocation": "revoke"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeOAuth

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.fake.asked.append(parts.path)
        if parts.path == "/.well-known/oauth-authorization-server":
            return self._answer(200, self.fake.document())
        if parts.path != "/authorize":
            return self._answer(404, {})
        try:
            back = self.fake.authorize(_once(parts.query))
        except Refused as refused:
            return self._refuse(refused)
        return self._answer(302, {}, {"Location": back})

    def do_POST(self) -> None:
        self.fake.asked.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.fake.is_away:
            return self._answer(503, {})
        if self.fake.refuses_with is not None:
            return self._answer(*self.fake.refuses_with)
        time.sleep(self.fake.slowness)
        with self.fake.lock:
            try:
                if self.path == "/register":
                    return self._answer(201, self.fake.register(json.loads(body)))
                if self.headers.get("Content-Type") != "application/x-www-form-urlencoded":
                    raise Refused("invalid_request")
                asked = _once(body)
                client = self._client(asked)
                if self.path == "/revoke":
                    return self._answer(200, self.fake.revoke(asked))
                made = self.fake.token(asked, client)
            except Refused as refused:
                return self._refuse(refused)
        self.fake.goes_on.wait(30)
        return self._answer(200, made)

    def _client(self, asked: dict[str, str]) -> str:
        if self.fake.clients.get(asked.get("client_id", ""), ("secret",))[0] == "":  # one without a secret
            return asked["client_id"]
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        name, _, secret = base64.b64decode(given).decode().partition(":")
        client = unquote(name)
        if kind != "Basic" or self.fake.clients.get(client, ("",))[0] != unquote(secret):
            raise Refused("invalid_client")
        return client

    def _refuse(self, refused: Refused) -> None:
        self.fake.refusals.append(str(refused))
        self._answer(400, {"error": str(refused).partition(":")[0], "error_description": "canary-description"})

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        packed = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)


def _once(query: str) -> dict[str, str]:
    """No parameter comes twice (RFC 6749, 3.1)."""
    pairs = parse_qsl(query, keep_blank_values=True)
    if len(dict(pairs)) != len(pairs):
        raise Refused("invalid_request")
    return dict(pairs)


@contextmanager
def fake_oauth(resource: str) -> Iterator[FakeOAuth]:
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fake = FakeOAuth(f"http://127.0.0.1:{server.server_port}", resource)
    fake.goes_on.set()
    handler.fake = fake  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield fake
    finally:
        fake.goes_on.set()
        server.shutdown()
        server.server_close()


def guard(mcp: FakeMcp, oauth: FakeOAuth) -> None:
    """Let the server of tools let in only whom the authorization server knows."""
    path = "/.well-known/oauth-protected-resource/mcp"
    where = urlsplit(mcp.address)._replace(path=path).geturl()
    said = {"resource": mcp.address, "authorization_servers": [oauth.address], "scopes_supported": ["read"]}
    mcp.documents[path] = said
    mcp.challenge, mcp.lets_in = f'Bearer resource_metadata="{where}"', oauth.knows


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def come_back(away: str) -> str:
    """What an authorization server makes of it: the address that it sends the browser back to."""
    with pytest.raises(HTTPError) as answer:
        build_opener(_Stay).open(away)
    location: str = answer.value.headers["Location"]
    return location
