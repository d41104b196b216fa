"""The connection itself: over TLS, refused, and cut while it is made."""

import datetime
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agents.providers import wire
from agents.providers.base import Endpoint, ModelRequest, ProviderError, TextDelta, Trouble
from agents.providers.openai import OpenAIProvider
from memory.messages import user
from tests.llm_server import DONE, D, F
from tools import tls
from tools.cancel import Cancelled, CancelToken

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + built.public_bytes(pem))
    return path


class Peer:
    """One connection at a time: sends `sent`, closes when told to, else waits."""

    def __init__(self, sent: bytes, *, closes: bool, context: ssl.SSLContext | None = None) -> None:
        self._sent, self._closes, self._context = sent, closes, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
                with self._context.wrap_socket(plain, server_side=True) if self._context else plain as peer:
                    _take_request(peer)
                    peer.sendall(self._sent)
                    while not self._closes and peer.recv(65536):
                        pass
            except ssl.SSLError:
                continue
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def _take_request(peer: socket.socket) -> None:
    """Read all of it: a socket that is closed with bytes unread resets the connection, and the answer is lost."""
    taken = b""
    while b"\r\n\r\n" not in taken:
        piece = peer.recv(65536)
        if not piece:
            return
        taken += piece
    head, _, body = taken.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    missing = (int(length[1]) if length else 0) - len(body)
    while missing > 0 and (piece := peer.recv(missing)):
        missing -= len(piece)


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The server's context; the client trusts its certificate."""
    client = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(tls, "ssl_context", lambda: client)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    return server


@pytest.fixture
def peers() -> Iterator[list[Peer]]:
    started: list[Peer] = []
    yield started
    for peer in started:
        peer.close()


def _stream(address: str, cancel: CancelToken | None = None) -> list[object]:
    provider = OpenAIProvider(Endpoint("compatible", address, "k", anywhere=True))
    return list(provider.stream(ModelRequest("m", "", [user("hi")]), cancel or CancelToken()))


def test_an_answer_comes_over_tls(trusted: ssl.SSLContext, peers: list[Peer]) -> None:
    peers.append(Peer(HEAD + D({"content": "safe"}) + F("stop") + DONE, closes=True, context=trusted))
    assert _stream(f"https://127.0.0.1:{peers[0].port}/v1")[0] == TextDelta("safe")


def test_a_read_over_tls_can_be_cut(trusted: ssl.SSLContext, peers: list[Peer]) -> None:
    peers.append(Peer(HEAD + D({"content": "wait"}), closes=False, context=trusted))
    _assert_cut(f"https://127.0.0.1:{peers[0].port}/v1")


def test_a_handshake_can_be_cut(trusted: ssl.SSLContext, peers: list[Peer]) -> None:
    peers.append(Peer(b"", closes=False))
    _assert_cut(f"https://127.0.0.1:{peers[0].port}/v1")


def test_a_connection_that_nobody_accepts_can_be_cut() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        try:
            _assert_cut(f"http://127.0.0.1:{full.getsockname()[1]}/v1")
        finally:
            for filler in fillers:
                filler.close()


def _assert_cut(address: str) -> None:
    cancel = CancelToken()
    threading.Timer(0.2, cancel.cancel, ["stop"]).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        _stream(address, cancel)
    assert time.monotonic() - started < wire.CONNECT_SECONDS / 2, "by the stop, not by a time-out"


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path, peers: list[Peer]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    peers.append(Peer(HEAD, closes=True, context=server))
    with pytest.raises(ProviderError, match="certificate") as caught:
        _stream(f"https://127.0.0.1:{peers[0].port}/v1")
    assert caught.value.trouble is Trouble.UNREACHABLE


def test_the_process_has_one_context() -> None:
    assert tls.ssl_context() is tls.ssl_context()
