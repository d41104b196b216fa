"""Where a user may send the server."""

import _socket
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from agents.providers import addresses
from agents.providers.base import Endpoint, ModelRequest, ProviderError, Trouble
from agents.providers.catalog import connect
from goals.connection_forms import ConnectionForm
from memory.messages import user
from tests.agents.providers.test_transport import OK, Peer
from tests.factories import UserFactory
from tools.cancel import CancelToken

INSIDE = [
    "http://127.0.0.1:11434/v1",
    "http://localhost/v1",
    "http://0x7f.1/v1",
    "http://10.1.2.3/v1",
    "http://192.168.0.1/v1",
    "http://169.254.169.254/latest",
    "http://[::1]/v1",
    "http://[::ffff:127.0.0.1]/v1",
    "http://[fd00::1]/v1",
    "http://0.0.0.0/v1",
    "http://[64:ff9b::a9fe:a9fe]/latest",
    "http://[64:ff9b:1::a9fe:a9fe]/latest",
    "http://[2002:7f00:1::]/v1",
    "http://[2001:0:7f00:1::]/v1",
    "http://[::7f00:1]/v1",
    "http://[fec0::1]/v1",
    "http://[fe80::1]/v1",
    "http://168.63.129.16/metadata",
    "http://[::ffff:168.63.129.16]/metadata",
    "http://8.8.8.8:22/v1",
    "http://8.8.8.8:25/v1",
]
NONE = [
    "ftp://8.8.8.8/v1",
    "http://",
    "http://user@8.8.8.8/v1",
    "http://:password@8.8.8.8/v1",
    "http://@8.8.8.8/v1",
    "http://8.8.8.8/v1?x=",
    "http://8.8.8.8/v1#x",
    "http://[::1",
    "http://8.8.8.8:99999/",
]


OUTSIDE = [
    "https://8.8.8.8/v1",
    "http://8.8.8.8:8000/v1",
    "https://[2606:4700:4700::1111]/v1",
    "https://[::ffff:8.8.8.8]/v1",
    "https://[64:ff9b::808:808]/v1",
]


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses in figures lead to where they say, also to where no test may go."""

    def looked_up(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        figures = "127.0.0.1" if host == "localhost" else host
        return _socket.getaddrinfo(figures, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)


@pytest.mark.usefixtures("looked_up")
@pytest.mark.parametrize("address", OUTSIDE)
def test_all_may_send_the_server_outside(address: str) -> None:
    addresses.check(address, anywhere=False)


@pytest.mark.usefixtures("looked_up")
@pytest.mark.parametrize("address", INSIDE)
def test_only_staff_may_send_the_server_inside(address: str) -> None:
    addresses.check(address, anywhere=True)
    with pytest.raises(addresses.AddressRefused):
        addresses.check(address, anywhere=False)


@pytest.mark.parametrize("address", NONE)
def test_what_is_no_base_address_is_refused_for_all(address: str) -> None:
    with pytest.raises(addresses.AddressRefused):
        addresses.check(address, anywhere=True)


def test_the_internet_is_open_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests have no network, so the answer of the resolver is given."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **_: [(2, 1, 6, "", ("8.8.8.8", port))])
    addresses.check("https://models.example/v1", anywhere=False)


def _leads_to(monkeypatch: pytest.MonkeyPatch, port: int, *answers: Sequence[str]) -> list[Sequence[str]]:
    """Let the resolver give these addresses, one answer after the other; returns those that are left."""
    left = list(answers)

    def resolved(host: str, wanted: int, **_: object) -> list[tuple[object, ...]]:
        found = left.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return left


@pytest.mark.parametrize("answer", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"]])
def test_a_name_that_leads_inside_when_it_is_used_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    with Peer([OK]) as peer:
        _leads_to(monkeypatch, _port(peer), ["8.8.8.8"], answer)
        addresses.check("http://models.example/v1", anywhere=False)
        with pytest.raises(ProviderError, match="only staff") as caught:
            _call(Endpoint("compatible", "http://models.example/v1"))
        assert not peer.requests
    assert not caught.value.retryable


def test_the_address_that_was_checked_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Peer([OK + b"\r\n"], hangs_up=[0]) as peer:
        left = _leads_to(monkeypatch, _port(peer), ["127.0.0.1"], ["8.8.8.8"])
        with pytest.raises(ProviderError, match="ended early"):
            _call(Endpoint("compatible", "http://models.example/v1", anywhere=True))
        assert len(peer.requests) == 1
    assert left == [["8.8.8.8"]], "nobody asked twice"


def test_a_host_that_is_no_name_is_nowhere() -> None:
    with pytest.raises(ProviderError) as caught:
        _call(Endpoint("compatible", "http://a..b/v1", anywhere=True))
    assert caught.value.trouble is Trouble.UNREACHABLE


def _port(peer: Peer) -> int:
    port = urlsplit(peer.url).port
    assert port
    return port


def _call(endpoint: Endpoint) -> None:
    list(connect(endpoint).stream(ModelRequest("m", "", [user("hi")]), CancelToken()))


@pytest.mark.django_db
def test_the_form_keeps_those_who_are_not_staff_out_of_the_inside() -> None:
    fields = {"kind": "compatible", "compatible-url": "http://127.0.0.1:9/v1", "compatible-model": "m"}
    assert ConnectionForm(UserFactory.create(staff=True), fields).is_valid()
    assert not ConnectionForm(UserFactory.create(), fields).is_valid()
