"""Signing devices in and out, and what a token opens."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from allauth.account.adapter import get_adapter
from django.contrib.auth.hashers import MD5PasswordHasher
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agents import throttle, tokens
from agents.live.stream import redis_client
from agents.models import DeviceToken
from tests.factories import PASSWORD, UserFactory, bearer

pytestmark = pytest.mark.django_db
LOGIN = "/api/v1/auth/login"
LOGOUT = "/api/v1/auth/logout"
GOALS = "/api/v1/goals"


@pytest.fixture(autouse=True)
def uncounted(settings: Any) -> None:
    """Each test starts with nobody having tried to sign in, and hashes cheaply."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    client = redis_client()
    for key in client.scan_iter("*login:*"):
        client.delete(key)
    throttle.local.ends.clear()


def sign_in(client: Client, email: str, password: str = PASSWORD, **more: Any) -> Any:
    body = {"email": email, "password": password, **more}
    return client.post(LOGIN, body, content_type="application/json")


def test_a_token_of_a_sign_in_opens_the_api(client: Client) -> None:
    user = UserFactory()
    token = sign_in(client, user.email.upper(), device="Phone").json()["token"]
    assert token.startswith("wm_")
    assert client.get(GOALS, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert DeviceToken.objects.get(user=user).name == "Phone"


def test_only_the_digest_of_a_token_is_stored() -> None:
    user = UserFactory()
    token = tokens.issue(user)
    device = DeviceToken.objects.get(user=user)
    assert bytes(device.digest) == tokens.digest(token)
    assert token not in repr(DeviceToken.objects.filter(user=user).values())


def test_a_refused_sign_in_does_not_say_why(client: Client) -> None:
    asleep = UserFactory(is_active=False)
    awake = UserFactory()
    answers = [
        sign_in(client, awake.email, "wrong"),
        sign_in(client, asleep.email),
        sign_in(client, "nobody@example.org"),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["error"]["code"] == "wrong_credentials"


@pytest.mark.parametrize("email", ["nobody@example.org", "known"])
def test_an_unknown_address_costs_as_many_hashes_as_a_known_one(
    client: Client, monkeypatch: pytest.MonkeyPatch, email: str
) -> None:
    """Time cannot be measured on a busy machine; what takes the time can be counted."""
    user = UserFactory()
    hashed: list[str] = []
    original = MD5PasswordHasher.encode

    def encode(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return original(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", encode)
    sign_in(client, user.email if email == "known" else email, "wrong")
    assert len(hashed) == 1


def test_too_many_tries_for_one_address_of_mail_must_wait(client: Client) -> None:
    user = UserFactory()
    for _ in range(throttle.PER_EMAIL):
        assert sign_in(client, user.email, "wrong").status_code == 401
    answer = sign_in(client, user.email)
    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "throttled"
    assert 0 < int(answer["Retry-After"]) <= throttle.WINDOW_SECONDS
    assert sign_in(client, UserFactory().email).status_code == 200


def test_too_many_tries_from_one_machine_must_wait(client: Client) -> None:
    for number in range(throttle.PER_ADDRESS):
        assert sign_in(client, f"nobody{number}@example.org", "x").status_code == 401
    assert sign_in(client, UserFactory().email).status_code == 429
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert sign_in(elsewhere, UserFactory().email).status_code == 200


def test_tries_are_counted_without_redis(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise redis.ConnectionError

    monkeypatch.setattr(throttle, "redis_client", away)
    user = UserFactory()
    answers = [sign_in(client, user.email, "wrong").status_code for _ in range(throttle.PER_EMAIL + 1)]
    assert answers == [401] * throttle.PER_EMAIL + [429]


def test_a_right_password_clears_the_count(client: Client) -> None:
    user = UserFactory()
    for _ in range(throttle.PER_EMAIL - 1):
        sign_in(client, user.email, "wrong")
    assert sign_in(client, user.email).status_code == 200
    assert sign_in(client, user.email, "wrong").status_code == 401


def test_signing_out_ends_the_token_and_no_other(client: Client) -> None:
    user = UserFactory()
    phone, tablet = bearer(user), bearer(user)
    assert client.post(LOGOUT, content_type="application/json", headers=phone).status_code == 204
    assert client.get(GOALS, headers=phone).status_code == 401
    assert client.get(GOALS, headers=tablet).status_code == 200


@pytest.mark.parametrize("header", ["Bearer wm_unknown", "Bearer ", "Bearer nonsense", "Basic abc", "wm_x", ""])
def test_what_is_no_token_is_refused(client: Client, header: str) -> None:
    answer = client.get(GOALS, headers={"Authorization": header} if header else {})
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["error"]["code"] in ("invalid_token", "not_authenticated")


def test_a_token_counts_in_the_header_only(client: Client) -> None:
    token = tokens.issue(UserFactory())
    assert client.get(f"{GOALS}?token={token}&access_token={token}").status_code == 401
    client.cookies["token"] = token
    assert client.get(GOALS).status_code == 401


def test_a_browser_session_does_not_open_the_api(client: Client) -> None:
    client.force_login(UserFactory())
    assert client.get(GOALS).status_code == 401


def test_a_user_who_is_switched_off_is_refused(client: Client) -> None:
    user = UserFactory()
    headers = bearer(user)
    user.is_active = False
    user.save()
    assert client.get(GOALS, headers=headers).status_code == 401


def test_use_is_noted_once_a_minute(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    user = UserFactory()
    headers = bearer(user)
    with django_assert_num_queries(2):  # the note of use, goals; token and user are a prepared statement, not counted
        client.get(GOALS, headers=headers)
    with django_assert_num_queries(1):
        client.get(GOALS, headers=headers)
    DeviceToken.objects.update(last_used_at=timezone.now() - timedelta(seconds=61))
    with django_assert_num_queries(2):
        client.get(GOALS, headers=headers)
    used = DeviceToken.objects.get(user=user).last_used_at
    assert used is not None
    assert timezone.now() - used < timedelta(seconds=30)


def test_a_new_password_signs_all_devices_out(client: Client, rf: RequestFactory) -> None:
    user = UserFactory()
    headers = bearer(user)
    get_adapter(rf.get("/")).set_password(user, "another long pass phrase")
    assert client.get(GOALS, headers=headers).status_code == 401
