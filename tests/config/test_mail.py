"""A forgotten password, with mail and without."""

import io
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from config.mail import SMTP, mailer
from tests.factories import DeviceTokenFactory, UserFactory
from tests.processes import wait_until

pytestmark = pytest.mark.django_db
NEW = "a sentence of some words"


@pytest.fixture
def user() -> User:
    person: User = UserFactory.create()
    return person


def test_without_a_mail_server_the_page_promises_no_mail(client: Client, user: User) -> None:
    for page in (
        client.get("/accounts/password/reset/"),
        client.post("/accounts/password/reset/", {"email": user.email}, follow=True),
    ):
        text = page.content.decode()
        assert "manage.py password EMAIL" in text
        assert "on its way" not in text
    assert mail.outbox == []


def test_with_one_the_mail_is_in_our_words_and_its_link_works_once(
    client: Client, user: User, settings: Settings
) -> None:
    settings.SENDS_MAIL = True
    settings.DEFAULT_FROM_EMAIL = "Waymark <waymark@example.org>"
    done = client.post("/accounts/password/reset/", {"email": user.email}, follow=True)
    assert "a link is on its way" in done.content.decode()
    wait_until(lambda: len(mail.outbox) == 1)
    [letter] = mail.outbox
    assert (letter.subject, letter.from_email) == ("Your new password for Waymark", "Waymark <waymark@example.org>")
    assert letter.to == [user.email]
    assert "Thank you for using" not in letter.body
    found = re.search(r"http://testserver(/\S+)", str(letter.body))
    assert found
    form = client.get(found[1], follow=True)
    address = form.redirect_chain[-1][0]
    assert client.post(address, {"password1": NEW, "password2": NEW}).status_code == 302
    assert Client().login(username=user.username, password=NEW)
    assert "This link is spent" in Client().get(found[1], follow=True).content.decode()


def test_strangers_get_no_mail(client: Client, settings: Settings) -> None:
    settings.SENDS_MAIL = True
    done = client.post("/accounts/password/reset/", {"email": "nobody@example.org"}, follow=True)
    assert "a link is on its way" in done.content.decode()
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("smtp+tls://me:a%40b@mail.example:587", {"port": 587, "password": "a@b", "use_tls": True, "use_ssl": False}),
        ("smtp+ssl://mail.example", {"port": None, "username": "", "use_tls": False, "use_ssl": True}),
    ],
)
def test_a_mail_server_is_an_address(address: str, options: dict[str, Any]) -> None:
    made = mailer(address)
    assert made["BACKEND"] == SMTP
    assert made["OPTIONS"]["host"] == "mail.example"
    assert options.items() <= made["OPTIONS"].items()


def test_the_owner_sets_a_password_and_devices_are_signed_out(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    DeviceTokenFactory.create(user=user)
    monkeypatch.setattr("agents.management.commands.password.getpass", lambda _: NEW)
    out = io.StringIO()
    call_command("password", user.email, stdout=out)
    assert Client().login(username=user.username, password=NEW)
    assert not user.devices.exists()
    monkeypatch.setattr("agents.management.commands.password.getpass", lambda _: "12345")
    with pytest.raises(CommandError, match="too short"):
        call_command("password", user.email)
    monkeypatch.setattr("agents.management.commands.password.getpass", lambda _: input())
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CommandError, match="nothing was changed"):
        call_command("password", user.email)


def test_pages_without_a_purpose_are_not_there(client: Client, user: User) -> None:
    client.force_login(user)
    for path in ("email/", "confirm-email/", "confirm-email/made-up/", "password/set/"):
        assert client.get(f"/accounts/{path}").status_code == 404
