"""Web push, against a service that refuses what a real one would (mission H10, threat T9)."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from py_vapid import Vapid02
from pytest_django import Settings

from agents import tokens
from agents.models import DeviceToken
from agents.refusals import Refused
from goals import push
from goals.models import Goal, Notice, PushDevice, Receipt
from goals.notice import ReceiptState
from goals.sending import Outcome
from tests.factories import GoalFactory, PushDeviceFactory, UserFactory
from tests.goals.test_notices import Later, failed, finished, later, receipts, service
from tests.locks import waiting
from tests.processes import wait_until
from tests.push_service import BrowserOfSomebody, PushService, decoded
from tools.safe_fetch import safe_fetch

__all__ = ["later", "service"]

pytestmark = pytest.mark.django_db(transaction=True)

HELLO = push.Payload(id="", title="Waymark", body="Hello", url="/")


@pytest.fixture
def browser(service: PushService) -> BrowserOfSomebody:
    return service.browser(push.public_key())


@pytest.fixture
def device(browser: BrowserOfSomebody, user: User) -> PushDevice:
    return push.register(user, browser.subscription, "Firefox on Linux")


def test_it_arrives_encrypted_and_signed(device: PushDevice, browser: BrowserOfSomebody, service: PushService) -> None:
    assert push.send(device, HELLO).state == "sent"
    assert service.refused == []
    assert browser.shown == [{"id": "", "title": "Waymark", "body": "Hello", "url": "/"}]
    assert browser.headers[0]["Urgency"] == "normal"
    assert len(decoded(push.public_key())) == 65
    assert browser.address not in device.sealed


def test_the_service_refuses_what_is_signed_by_somebody_else(
    device: PushDevice, service: PushService, settings: Settings
) -> None:
    settings.WAYMARK_VAPID_KEY = "YW5vdGhlci1rZXktMDEyMzQ1Njc4OWFiY2RlZmdoaWo"
    outcome = push.send(device, HELLO)
    assert (outcome.state, outcome.detail) == ("refused", "The push service answered 403.")
    assert "another key" in service.refused[0]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"aud": "https://elsewhere.example"}, "audience"),
        ({"exp": 1_000_000_000}, "stale"),
        ({"exp": 99_999_999_999}, "stale"),
    ],
)
def test_the_service_is_strict_about_claims(
    broken: dict[str, Any], why: str, device: PushDevice, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests the test: what passes elsewhere has been looked at."""
    sign = Vapid02.sign
    monkeypatch.setattr(Vapid02, "sign", lambda self, claims: sign(self, claims | broken))
    assert push.send(device, HELLO).state == "refused"
    assert why in service.refused[0]


def test_the_longest_payload_fits(device: PushDevice, browser: BrowserOfSomebody, goal: Goal) -> None:
    goal.title = "\N{GRINNING FACE}" * Goal.TITLE_LENGTH
    goal.save()
    notice = Notice(
        user=goal.user, thread=goal.thread, kind="failed", said="\N{GRINNING FACE}" * Notice.LENGTH, at=timezone.now()
    )
    for several in (1, 30):
        assert push.send(device, push.of_notices([notice] * several)).state == "sent"
    assert browser.shown[0]["body"] == notice.said


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_whose_subscription_is_gone_is_told_again_once_it_has_another(
    status: int, goal: Goal, client: Client, service: PushService, later: Later
) -> None:
    """Its service worker could not say so when that changed: the server was away (`static/js/7-notices.js`)."""
    old, new = (service.browser(push.public_key()) for _ in range(2))
    client.force_login(goal.user)
    client.post("/settings/notices/devices/", {"subscription": old.subscription}, headers={"User-Agent": "Firefox"})

    def is_to_renew(browser: Client = client, **said: str) -> bool:
        told: bool = browser.post("/looking/", {"path": "/notes/", **said}).json()["renew"]
        return told

    assert not is_to_renew(push=old.address)
    assert is_to_renew(push=new.address)
    assert is_to_renew(push="")
    later(1, tick=False)
    failed(goal)
    later(0.5)
    service.answers = [status]
    later(1)
    finished(goal)
    later(2)
    assert (receipts(), old.shown) == ([("push", "gone")], [])
    assert Receipt.objects.get().whom == "Firefox"
    assert "cannot be reached any more" in client.get("/settings/notices/").content.decode()
    assert is_to_renew(push=old.address)
    assert not is_to_renew()
    stranger = Client()
    stranger.force_login(UserFactory())
    stranger.cookies["waymark_device"] = client.cookies["waymark_device"].value
    assert not is_to_renew(stranger, push=new.address)
    assert client.post("/settings/notices/devices/renew", {"subscription": new.subscription}).status_code == 204
    assert not is_to_renew(push=new.address)
    later(1)
    told = {each["body"] for each in new.shown}
    assert told == {"The model gave an empty answer", "The plan respects your knee"}, "what it missed, too"
    client.post(f"/settings/notices/devices/{PushDevice.objects.get().pk}/remove/")
    assert not is_to_renew(push=new.address)


def test_a_trial_finds_out_that_a_browser_is_not_reached(
    device: PushDevice, service: PushService, client: Client, user: User
) -> None:
    client.force_login(user)
    service.browsers.clear()
    for _again in range(2):
        answer = client.post(f"/settings/notices/devices/{device.pk}/try/", follow=True).content.decode()
        assert "It is told again once Waymark is opened there." in answer
        assert PushDevice.objects.get().is_lost
    assert len(service.refused) == 1


def test_a_subscription_that_was_renewed_while_the_old_one_was_tried_is_kept(
    goal: Goal, device: PushDevice, service: PushService, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = service.browser(push.public_key())

    def renew_and_fetch(*given: Any, **more: Any) -> Any:
        PushDevice.objects.filter(pk=device.pk).update(digest=renewed.digest, sealed=renewed.sealed)
        return safe_fetch(*given, **more)

    renewed = push.register(UserFactory(), new.subscription, "Firefox on Linux")
    renewed.delete()
    finished(goal)
    later(0.5)
    service.answers = [410]
    with monkeypatch.context() as patch:
        patch.setattr("goals.push.safe_fetch", renew_and_fetch)
        later(1)
    assert receipts() == [("push", "later")]
    later(1)
    assert receipts() == [("push", "sent")]
    assert len(new.shown) == 1


def test_a_browser_that_signs_out_while_another_is_told_is_told_nothing(
    goal: Goal, device: PushDevice, service: PushService, later: Later, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = service.browser(push.public_key())
    client.force_login(goal.user)
    client.post("/settings/notices/devices/", {"subscription": leaving.subscription})
    later(1, tick=False)
    finished(goal)
    later(0.5)
    send = push.send

    def sign_out_and_send(*given: Any) -> Outcome:
        client.post("/accounts/logout/")
        return send(*given)

    monkeypatch.setattr(push, "send", sign_out_and_send)
    later(1)
    assert receipts() == [("push", "sent")]
    assert leaving.shown == []


@pytest.mark.parametrize(("asked", "minutes"), [(600, 10), (10, 1), (10**30, 120)])
def test_a_service_that_is_busy_is_asked_again_when_it_wants_to_be(
    asked: int,
    minutes: int,
    goal: Goal,
    device: PushDevice,
    browser: BrowserOfSomebody,
    service: PushService,
    later: Later,
) -> None:
    finished(goal)
    later()
    service.answers, service.retry_after = [429], asked
    later(1)
    service.retry_after = 0
    later(minutes - 0.5)
    assert receipts(channel="push") == [("push", "later")]
    later(0.5)
    assert receipts(channel="push") == [("push", "sent")]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_service_that_is_busy_is_tried_again_and_given_up(
    status: int, goal: Goal, device: PushDevice, browser: BrowserOfSomebody, service: PushService, later: Later
) -> None:
    finished(goal)
    later()
    service.answers = [status] * 2
    later(1)
    assert receipts() == [("push", "later")]
    later(0.5)
    assert len(service.answers) == 1
    later(0.5)
    assert service.answers == []
    later(2)
    assert receipts() == [("push", "sent")]
    assert len(browser.shown) == 1
    finished(goal, "It goes on and on.")
    later()
    service.answers = [status] * 11
    for minutes in (1, 1, 2, 4, 8, *[16] * 7):
        later(minutes)
    assert receipts()[-1] == ("push", "failed")
    assert service.answers == []
    assert len(browser.shown) == 1


def test_an_answer_that_breaks_off_is_not_asked_for_again(
    goal: Goal, device: PushDevice, browser: BrowserOfSomebody, service: PushService, later: Later
) -> None:
    finished(goal)
    later()
    service.answers = ["drop"]
    for _tick in range(5):
        later(3)
    assert receipts() == [("push", "unknown")]
    assert len(browser.shown) == 1


def test_slow_services_of_one_user_keep_nobody_waiting(
    goal: Goal, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GoalFactory.create()
    for user in (*[other.user] * 4, goal.user):
        PushDeviceFactory(user=user, name=user.username)
    now, asked = [0.0], list[str]()

    def send(device: PushDevice, payload: push.Payload) -> Outcome:
        now[0] += 10
        asked.append(device.name)
        return Outcome(ReceiptState.SENT)

    monkeypatch.setattr(push, "send", send)
    monkeypatch.setattr("goals.delivery.time.monotonic", lambda: now[0])
    later(1)
    finished(goal)
    finished(other)
    later(1)
    assert sorted(asked) == sorted([goal.user.username, other.user.username])
    for _tick in range(3):
        later()
    assert len(asked) == 5


def test_one_trial_at_a_time_is_waited_for(
    device: PushDevice, client: Client, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, answers = f"/settings/notices/devices/{device.pk}/try/", list[str]()

    def send(device: PushDevice, payload: push.Payload) -> Outcome:
        answers.append(client.post(place, follow=True).content.decode())
        return Outcome(ReceiptState.SENT)

    monkeypatch.setattr(push, "send", send)
    assert "Sent." in client.post(place, follow=True).content.decode()
    (meanwhile,) = answers
    assert "Try again in a moment." in meanwhile


def test_a_service_out_of_reach_is_tried_again(
    goal: Goal, device: PushDevice, service: PushService, later: Later
) -> None:
    finished(goal)
    later()
    service.shutdown()
    service.socket.close()
    later(1)
    receipt = Receipt.objects.get()
    assert receipt.state == "later"
    assert "could not be reached" in receipt.detail


def test_it_does_not_follow_where_the_service_points(
    device: PushDevice, browser: BrowserOfSomebody, service: PushService
) -> None:
    service.answers = [307]
    assert push.send(device, HELLO).state == "refused"
    assert browser.shown == []


def test_the_browser_says_that_it_has_shown_it(
    goal: Goal, browser: BrowserOfSomebody, later: Later, client: Client
) -> None:
    client.force_login(goal.user)
    client.post("/settings/notices/devices/", {"subscription": browser.subscription})
    later(1, tick=False)  # what came before is not told
    finished(goal)
    later()
    later(1)
    notice = Notice.objects.get()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post(f"/notices/{notice.pk}/shown").status_code == 204
    assert receipts() == [("push", "shown")]
    other = Client()
    other.force_login(UserFactory())
    assert other.post(f"/notices/{notice.pk}/shown").status_code == 404


def test_a_browser_is_added_tried_and_removed(client: Client, user: User, browser: BrowserOfSomebody) -> None:
    client.force_login(user)
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    added = client.post(
        "/settings/notices/devices/",
        {"subscription": browser.subscription},
        follow=True,
        headers={"User-Agent": agent},
    )
    page = added.content.decode()
    assert "Firefox on Linux" in page
    assert "This browser," in page
    device = PushDevice.objects.get()
    assert "Sent." in client.post(f"/settings/notices/devices/{device.pk}/try/", follow=True).content.decode()
    assert browser.shown[0]["body"] == "This is how you will be told."
    stranger = Client()
    stranger.force_login(UserFactory())
    for what in ("try", "remove"):
        assert stranger.post(f"/settings/notices/devices/{device.pk}/{what}/").status_code == 404
    client.post(f"/settings/notices/devices/{device.pk}/remove/")
    assert not PushDevice.objects.exists()


@pytest.mark.parametrize(
    "given",
    [
        "",
        "no JSON",
        "{}",
        '{"endpoint": "https://push.example/1", "keys": {"p256dh": "AAAA", "auth": "AAAA"}}',
        {"endpoint": "file:///etc/passwd"},
        {"endpoint": "http://push.example/not-secured"},
        {"endpoint": "https://me:word@push.example/"},
        {"endpoint": "https://push.example/" + "x" * 1000},
        {"keys": {"p256dh": "AAAA"}},
    ],
)
def test_what_is_no_subscription_is_refused(given: Any, browser: BrowserOfSomebody, user: User) -> None:
    if isinstance(given, dict):
        given = json.dumps(json.loads(browser.subscription) | given)
    with pytest.raises(Refused):
        push.register(user, given, "Browser")


def test_an_address_inside_is_never_opened(user: User, browser: BrowserOfSomebody, settings: Settings) -> None:
    """What was registered is looked up, and checked, each time."""
    inside = json.dumps(json.loads(browser.subscription) | {"endpoint": "https://127.0.0.1/push"})
    device = push.register(user, inside, "Browser")
    outcome = push.send(device, HELLO)
    assert outcome.state == "refused"


def test_a_browser_has_one_user_and_signs_out_with_them(client: Client, user: User, browser: BrowserOfSomebody) -> None:
    push.register(UserFactory(), browser.subscription, "Browser")
    client.force_login(user)
    client.post("/settings/notices/devices/", {"subscription": browser.subscription})
    assert [*PushDevice.objects.values_list("user", flat=True)] == [user.pk]
    client.post("/accounts/logout/")
    assert not PushDevice.objects.exists()
    token = DeviceToken.objects.get(digest=tokens.digest(tokens.issue(user)))
    push.register(user, browser.subscription, "Phone", token=token)
    tokens.revoke_all(user)
    assert not PushDevice.objects.exists()


def test_a_new_password_signs_this_browser_out_too(client: Client, user: User, service: PushService) -> None:
    """Whoever knew the old one may be at this browser: nothing is told where nobody is signed in."""
    user.set_password("correct horse battery")
    user.save()
    client.force_login(user)
    given = {"subscription": service.browser(push.public_key()).subscription}
    client.post("/settings/notices/devices/", given)
    words = {"oldpassword": "correct horse battery", "password1": "staple 4711 horse", "password2": "staple 4711 horse"}
    client.post("/accounts/password/change/", words)
    assert client.get("/").headers["Location"].startswith("/accounts/login/")
    assert not PushDevice.objects.exists()


@pytest.mark.parametrize("by", ["staff", "command"])
def test_a_new_password_that_others_have_set_signs_all_browsers_out(
    by: str,
    client: Client,
    user: User,
    browser: BrowserOfSomebody,
    admin_client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = "staple 4711 horse"
    client.force_login(user)
    client.post("/settings/notices/devices/", {"subscription": browser.subscription})
    if by == "command":
        monkeypatch.setattr("agents.management.commands.password.getpass", lambda prompt: new)
        call_command("password", user.email)
    else:
        words = {"password1": new, "password2": new, "usable_password": "true"}
        admin_client.post(reverse("admin:auth_user_password_change", args=[user.pk]), words)
    user.refresh_from_db()
    assert user.check_password(new)
    assert not PushDevice.objects.exists()


def test_a_renewed_subscription_takes_the_place_of_the_old_one(
    client: Client, user: User, service: PushService
) -> None:
    client.force_login(user)
    for _time in range(2):
        given = {"subscription": service.browser(push.public_key()).subscription}
        client.post("/settings/notices/devices/", given)
    assert PushDevice.objects.count() == 1


def test_a_browser_that_renews_its_subscription_misses_nothing_and_is_told_nothing_twice(
    goal: Goal, client: Client, service: PushService, later: Later
) -> None:
    renew = "/settings/notices/devices/renew"
    old, new = (service.browser(push.public_key()) for _ in range(2))
    client.force_login(goal.user)
    assert client.get(renew).status_code == 404
    assert client.post(renew, {"subscription": old.subscription}).status_code == 404
    client.post("/settings/notices/devices/", {"subscription": old.subscription})
    later(1, tick=False)
    failed(goal)
    later()
    later(1)
    finished(goal)  # and the browser renews before it is told of this
    later(0.5, tick=False)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    needed = strict.get(renew).json()
    assert needed["key"] == push.public_key()
    given = {"subscription": new.subscription}
    assert strict.post(renew, given).status_code == 403
    assert strict.post(renew, given, headers={"X-CSRFToken": needed["token"]}).status_code == 204
    assert client.post(renew, {"subscription": "{}"}).status_code == 422
    later(1)
    later(1)
    assert [len(browser.shown) for browser in (old, new)] == [1, 1]
    assert new.shown[0]["title"].startswith("Finished")
    stranger = Client()
    stranger.force_login(UserFactory())
    stranger.cookies["waymark_device"] = client.cookies["waymark_device"].value
    assert stranger.post(renew, given).status_code == 404


def test_there_are_so_many_devices_and_no_more(user: User, service: PushService) -> None:
    for _n in range(push.MOST):
        push.register(user, service.browser("").subscription, "Browser")
    with pytest.raises(Refused):
        push.register(user, service.browser("").subscription, "Browser")


def test_one_that_is_not_reached_makes_room(user: User, service: PushService) -> None:
    devices = [push.register(user, service.browser("").subscription, "Browser") for _n in range(push.MOST)]
    assert push.lose(devices[7])
    push.register(user, service.browser("").subscription, "Browser")
    assert PushDevice.objects.count() == push.MOST
    assert not PushDevice.objects.lost().exists()


def test_two_who_are_added_at_once_are_not_too_many(
    user: User, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "MOST", 1)

    def add(subscription: str) -> bool:
        try:
            return bool(push.register(user, subscription, "Browser"))
        except Refused:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as both:
        with transaction.atomic():
            User.objects.select_for_update().get(pk=user.pk)
            added = [both.submit(add, service.browser("").subscription) for _ in range(2)]
            wait_until(lambda: waiting() == 2)
        assert sorted(each.result() for each in added) == [False, True]
    assert PushDevice.objects.count() == 1


def test_without_a_key_nothing_is_pushed_and_the_page_says_so(
    client: Client, goal: Goal, device: PushDevice, later: Later, settings: Settings
) -> None:
    settings.WAYMARK_VAPID_KEY = ""
    finished(goal)
    later()
    later(1)
    assert receipts() == []
    client.force_login(goal.user)
    assert "WAYMARK_VAPID_KEY" in client.get("/settings/notices/").content.decode()
    tried = client.post(f"/settings/notices/devices/{device.pk}/try/", follow=True).content.decode()
    assert "This server has no key to sign with." in tried


def test_the_worker_and_the_manifest_are_there_for_everybody(client: Client) -> None:
    worker = client.get("/sw.js")
    assert worker["Content-Type"] == "text/javascript"
    assert "script-src 'self'" in worker["Content-Security-Policy"]
    manifest = client.get("/manifest.webmanifest")
    assert manifest["Content-Type"] == "application/manifest+json"
    for icon in manifest.json()["icons"]:
        assert client.get(icon["src"]).status_code == 200
    page = client.get("/accounts/login/", follow=True).content.decode()
    assert re.search(r'rel="manifest" href="/manifest.webmanifest"', page)
