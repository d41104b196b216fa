"""T4: guessing is slow, and nobody keeps anybody else out by it."""

from typing import Any

import pytest
from django.test import Client

from agents import throttle
from agents.live.stream import redis_client
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db
STRANGER, OWNER = "198.51.100.7", "203.0.113.9"


@pytest.fixture(autouse=True)
def uncounted(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    for key in redis_client().scan_iter("*login:*"):
        redis_client().delete(key)
    throttle.local.ends.clear()


def by_device(client: Client, email: str, password: str, **more: Any) -> bool | None:
    """Whether it worked; None when it has to wait."""
    body = {"email": email, "password": password}
    status = client.post("/api/v1/auth/login", body, content_type="application/json", **more).status_code
    return {200: True, 401: False, 429: None}[status]


def by_page(client: Client, email: str, password: str, **more: Any) -> bool | None:
    answer = client.post("/accounts/login/", {"login": email, "password": password}, **more)
    if answer.status_code == 302:
        return True
    return None if "Too many failed" in answer.content.decode() else False


@pytest.mark.parametrize("sign_in", [by_device, by_page])
def test_what_a_stranger_tries_does_not_keep_the_owner_out(sign_in: Any) -> None:
    user = UserFactory.create()
    tries = [sign_in(Client(REMOTE_ADDR=STRANGER), user.email, "wrong") for _ in range(throttle.PER_EMAIL + 5)]
    assert tries == [False] * throttle.PER_EMAIL + [None] * 5
    assert sign_in(Client(REMOTE_ADDR=STRANGER), user.email, PASSWORD) is None
    assert sign_in(Client(REMOTE_ADDR=OWNER), user.email, PASSWORD) is True


def test_pages_and_devices_count_together() -> None:
    user = UserFactory.create()
    for sign_in in (by_page, by_device) * (throttle.PER_EMAIL // 2):
        assert sign_in(Client(), user.email, "wrong") is False
    assert [sign_in(Client(), user.email, PASSWORD) for sign_in in (by_page, by_device)] == [None, None]


def test_a_browser_that_has_signed_in_before_is_kept_out_by_nobody() -> None:
    """Also from the stranger's own address, and when many strangers have used up all tries there are."""
    user, browser = UserFactory.create(), Client(REMOTE_ADDR=STRANGER)
    assert by_page(browser, user.email, PASSWORD) is True
    browser.post("/accounts/logout/")
    for number in range(throttle.FROM_EVERYWHERE + 1):
        by_device(Client(REMOTE_ADDR=f"192.0.2.{number % 250}"), user.email, "wrong")
    for _ in range(throttle.PER_EMAIL + 1):
        by_page(Client(REMOTE_ADDR=STRANGER), user.email, "wrong")
    assert by_page(Client(REMOTE_ADDR="192.0.2.251"), user.email, PASSWORD) is None
    assert by_page(browser, user.email, PASSWORD) is True


def test_a_known_browser_has_no_more_tries_than_others_and_none_for_others() -> None:
    user, other, browser = UserFactory.create(), UserFactory.create(), Client()
    assert by_page(browser, user.email, PASSWORD) is True
    browser.post("/accounts/logout/")
    tries = [by_page(browser, user.email, "wrong") for _ in range(throttle.PER_EMAIL + 1)]
    assert tries[-1] is None
    for _ in range(throttle.PER_EMAIL):
        by_device(Client(), other.email, "wrong")
    assert by_page(browser, other.email, PASSWORD) is None


@pytest.mark.parametrize("proxies", [0, 1, 2])
def test_behind_a_proxy_callers_are_told_apart_by_what_the_proxy_wrote(settings: Any, proxies: int) -> None:
    """The stranger writes another address before it each time, which is not believed."""
    settings.WAYMARK_PROXIES = proxies
    client, user = Client(REMOTE_ADDR="127.0.0.1"), UserFactory.create()
    for number in range(throttle.PER_EMAIL + 1):
        forged = f"192.0.2.{number}, {STRANGER}" if proxies < 2 else f"{number}, {STRANGER}, 10.0.0.1"
        tried = by_device(client, user.email, "wrong", headers={"X-Forwarded-For": forged})
    assert tried is None
    again = {"X-Forwarded-For": f"{OWNER}, 10.0.0.1" if proxies == 2 else OWNER}
    assert (by_device(client, user.email, PASSWORD, headers=again) is None) is (proxies == 0)


def test_a_network_of_ipv6_is_one_caller() -> None:
    user = UserFactory.create()
    tries = [
        by_device(Client(REMOTE_ADDR=f"2001:db8::{number:x}"), user.email, "wrong")
        for number in range(throttle.PER_EMAIL + 1)
    ]
    assert tries[-1] is None
    assert by_device(Client(REMOTE_ADDR="2001:db8:0:1::1"), user.email, PASSWORD) is True
