"""A push service over real HTTP, as strict as those of the makers of browsers, and browsers that subscribe to it."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import http_ece
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

LONGEST = 4096
DAY = 24 * 3600


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Refusal(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class BrowserOfSomebody:
    """Has a key pair and a secret; what it has shown, in order."""

    address: str
    key: str
    secret: bytes = b"0123456789abcdef"
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    shown: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def subscription(self) -> str:
        point = self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": encoded(point), "auth": encoded(self.secret)}
        return json.dumps({"endpoint": self.address, "expirationTime": None, "keys": keys})

    def show(self, body: bytes) -> None:
        """Raises: ECEException: it was not encrypted for this browser."""
        plain = http_ece.decrypt(body, private_key=self.private, auth_secret=self.secret)
        self.shown.append(json.loads(plain))


class PushService(ThreadingHTTPServer):
    """answers: the status of each next message, in the place of a good one; "drop": it is taken, and nothing said.
    retry_after: seconds, with the others."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Door)
        self.browsers: dict[str, BrowserOfSomebody] = {}
        self.answers: list[int | str] = []
        self.retry_after = 0
        self.refused: list[str] = []
        self.lock = threading.Lock()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def browser(self, key: str) -> BrowserOfSomebody:
        """One that has subscribed for messages signed with that key."""
        path = f"/push/{len(self.browsers)}"
        made = self.browsers[path] = BrowserOfSomebody(f"http://{self.place}{path}", key)
        return made


class Door(BaseHTTPRequestHandler):
    server: PushService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            said = self.server.answers.pop(0) if self.server.answers else 201
        browser = self.server.browsers.get(self.path)
        try:
            if browser is None:
                raise Refusal(404, "there is no such subscription")
            if said == 201 or said == "drop":
                self._check(browser, body)
                browser.show(body)
                browser.headers.append(dict(self.headers))
        except Refusal as refusal:
            said = refusal.status
            self.server.refused.append(str(refusal))
        except http_ece.ECEException as error:
            said = 400
            self.server.refused.append(f"undecryptable: {error}")
        if said == "drop":
            self.close_connection = True
            return
        assert isinstance(said, int)
        self.send_response(said)
        self.send_header("Content-Length", "0")
        if self.server.retry_after:
            self.send_header("Retry-After", str(self.server.retry_after))
        if said in (307, 308):
            self.send_header("Location", self.path)
        self.end_headers()

    def _check(self, browser: BrowserOfSomebody, body: bytes) -> None:
        if len(body) > LONGEST:
            raise Refusal(413, "the payload is too long")
        if not self.headers.get("TTL", "").isdecimal():
            raise Refusal(400, "the TTL is missing")
        if self.headers.get("Content-Encoding") != "aes128gcm":
            raise Refusal(400, "the encoding is unknown")
        scheme, _, rest = self.headers.get("Authorization", "").partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
        if scheme != "vapid" or parts.get("k") != browser.key:
            raise Refusal(403, "it is signed with another key than the one that was subscribed for")
        self._check_token(parts["t"], browser.key)

    def _check_token(self, token: str, key: str) -> None:
        signed, _, signature = token.rpartition(".")
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(key))
        raw = decoded(signature)
        try:
            pair = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
            public.verify(pair, signed.encode(), ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise Refusal(403, "the signature is wrong") from None
        claims = json.loads(decoded(signed.split(".")[1]))
        if claims["aud"] != f"http://{self.server.place}":
            raise Refusal(403, f"the audience is another: {claims['aud']}")
        if not time.time() < claims["exp"] <= time.time() + DAY:
            raise Refusal(403, "the token is stale, or lives for too long")
        if not str(claims.get("sub", "")).startswith(("mailto:", "https://")):
            raise Refusal(403, "nobody can be asked about it")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silent."""


@contextmanager
def push_service() -> Iterator[PushService]:
    service = PushService()
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        thread.join()
        service.server_close()
