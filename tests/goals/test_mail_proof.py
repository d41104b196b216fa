"""Where anybody may sign up, notices go by mail only to who has shown that the address is theirs (threat T16)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from goals import delivery, mail_proof
from goals.models import Goal, NoticeChoice
from tests.factories import NoticeFactory

pytestmark = pytest.mark.django_db(transaction=True)

ASK = "/settings/notices/mail-proof/"


@pytest.fixture
def letters(settings: Settings) -> list[Any]:
    settings.SENDS_MAIL = True
    settings.WAYMARK_SIGNUP_OPEN = True
    settings.WAYMARK_SITE = "https://waymark.example"
    return mail.outbox


def told(goal: Goal) -> None:
    long_ago = timezone.now() - timedelta(hours=5)
    NoticeFactory(thread=goal.thread, user=goal.user, kind="failed", said="It failed.", at=long_ago)
    delivery.deliver()


def test_nothing_goes_to_an_address_until_its_reader_says_so(
    goal: Goal, letters: list[Any], client: Client, settings: Settings
) -> None:
    told(goal)
    assert letters == []
    assert "until you have shown that it is yours" in client.get("/settings/notices/").text
    assert "Sent. Open the link" in client.post(ASK, follow=True).text
    [letter] = letters
    assert letter.to == [goal.user.email]
    link = re.search(r"https://waymark.example(/notices/mail-proof/\S+)", letter.body)
    assert link
    stranger = Client()
    assert stranger.get(link[1]).status_code == 200
    assert not mail_proof.is_proven(goal.user), "programs open links, too"
    assert "from now on" in stranger.post(link[1]).text
    delivery.deliver()
    assert [each.subject for each in letters[1:]] == [letters[1].subject]
    assert "until you have shown" not in client.get("/settings/notices/").text


def test_it_is_asked_once_a_day(goal: Goal, letters: list[Any], client: Client) -> None:
    client.post(ASK)
    assert "sent already" in client.post(ASK, follow=True).text
    assert len(letters) == 1
    NoticeChoice.objects.update(proof_asked_at=timezone.now() - timedelta(days=2))
    client.post(ASK)
    assert len(letters) == 2


def test_a_link_is_for_one_address_and_three_days(
    goal: Goal, letters: list[Any], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(ASK)
    link = re.search(r"/notices/mail-proof/\S+", letters[0].body)
    assert link
    assert client.get(link[0][:-2] + "x/").status_code == 404
    User.objects.filter(pk=goal.user_id).update(email="other@example.org")
    assert client.post(link[0]).status_code == 404
    User.objects.filter(pk=goal.user_id).update(email=goal.user.email)
    monkeypatch.setattr(mail_proof, "HOLDS", timedelta(seconds=-1))
    assert client.post(link[0]).status_code == 404
    assert not mail_proof.is_proven(goal.user)


def test_an_address_that_was_another_before_is_proven_too(goal: Goal) -> None:
    EmailAddress.objects.create(user=goal.user, email="before@example.org", primary=True, verified=True)
    EmailAddress.objects.create(user=goal.user, email=goal.user.email.upper())
    mail_proof.prove(goal.user)
    mail_proof.prove(goal.user)
    assert EmailAddress.objects.get(primary=True).email.lower() == goal.user.email


def test_where_accounts_are_made_by_staff_nobody_is_asked(
    goal: Goal, letters: list[Any], client: Client, settings: Settings
) -> None:
    settings.WAYMARK_SIGNUP_OPEN = False
    told(goal)
    assert len(letters) == 1
    assert "until you have shown" not in client.get("/settings/notices/").text
