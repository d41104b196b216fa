"""Where a user may send the server."""

import socket

import pytest

from goals import addresses
from goals.forms import ConnectionForm
from tests.factories import UserFactory

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
]
NONE = [
    "ftp://8.8.8.8/v1",
    "http://",
    "http://user@8.8.8.8/v1",
    "http://8.8.8.8/v1?x=",
    "http://8.8.8.8/v1#x",
    "http://[::1",
    "http://8.8.8.8:99999/",
]


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


@pytest.mark.django_db
def test_the_form_keeps_those_who_are_not_staff_out_of_the_inside() -> None:
    fields = {"kind": "compatible", "compatible-url": "http://127.0.0.1:9/v1", "compatible-model": "m"}
    assert ConnectionForm(UserFactory.create(staff=True), fields).is_valid()
    assert not ConnectionForm(UserFactory.create(), fields).is_valid()
