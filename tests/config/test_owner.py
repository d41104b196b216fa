"""The first account."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client

from config import setup_link
from config.owner import ensure_owner, how_to_sign_in

pytestmark = pytest.mark.django_db
OWNER = {"WAYMARK_OWNER_EMAIL": "Owner@Example.com", "WAYMARK_OWNER_PASSWORD": "a sentence of some words"}


def test_the_environment_makes_a_superuser_who_can_sign_in_by_e_mail(client: Client) -> None:
    owner = ensure_owner(OWNER)
    assert owner is not None
    assert owner.is_superuser
    assert EmailAddress.objects.get(user=owner).verified
    form = {"login": "owner@example.com", "password": OWNER["WAYMARK_OWNER_PASSWORD"]}
    assert client.post("/accounts/login/", form).status_code == 302


def test_it_is_made_once() -> None:
    assert ensure_owner(OWNER) == ensure_owner(OWNER | {"WAYMARK_OWNER_EMAIL": "other@example.com"})
    assert User.objects.count() == 1


def test_a_weak_password_is_refused() -> None:
    with pytest.raises(ValidationError):
        ensure_owner(OWNER | {"WAYMARK_OWNER_PASSWORD": "12345"})
    assert not User.objects.exists()


def test_the_command_says_which_variable_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYMARK_OWNER_EMAIL", "owner@example.com")
    monkeypatch.setenv("WAYMARK_OWNER_PASSWORD", "12345")
    with pytest.raises(CommandError, match="WAYMARK_OWNER_PASSWORD"):
        call_command("owner")


def test_without_them_there_is_a_link_until_somebody_has_an_account() -> None:
    assert ensure_owner({}) is None
    link = how_to_sign_in(None, "http://here").split()[0]
    token = link.removeprefix("http://here/setup/").rstrip("/")
    assert setup_link.verify(token)
    assert not setup_link.verify(token + "x")
    User.objects.create_user("anybody")
    assert not setup_link.verify(token)
