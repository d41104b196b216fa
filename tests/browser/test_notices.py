"""Notices in a real browser: switched on, pushed, shown, said back, and toasted where somebody looks."""

import json
from collections.abc import Iterator
from datetime import time
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from agents.models import UserAgent
from goals import delivery, noticing, push
from goals.models import Notice, PushDevice, Receipt
from goals.services import create_goal
from tests.browser.access import assert_usable
from tests.browser.conftest import signed_in
from tests.factories import NoticeFactory, ReceiptFactory
from tests.goals.test_notices import failed, finished
from tests.processes import wait_until
from tests.push_service import PushService, push_service

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


KEEP = """self.kept = [];
self.registration.showNotification = async (title, options) => { self.kept.push({ title, ...options }); };
self.registration.getNotifications = async () => self.kept;
Date.now = () => 1e12;"""
"""A browser without windows shows no notices."""


@pytest.fixture
def service(settings: Settings) -> Iterator[PushService]:
    with push_service() as service:
        settings.WAYMARK_FETCH_PRIVATE = [service.place]
        settings.WAYMARK_NOTICE_PUSH_SECONDS = 0
        yield service


def subscribing_to(page: Page, subscription: str) -> None:
    """The browser of the tests has no push service of its own."""
    given = f"Object.assign({subscription}, {{ unsubscribe: async () => {{}} }})"
    page.add_init_script(
        f"PushManager.prototype.subscribe = PushManager.prototype.getSubscription = async () => ({given});"
    )


def test_this_browser_is_told_and_says_that_it_was_shown(
    browser: Browser, live_server: LiveServer, user: User, service: PushService
) -> None:
    goal = create_goal(user, "Move to Graz")
    somebody = service.browser(push.public_key())
    with signed_in(browser, live_server.url, user, permissions=["notifications"]) as context:
        page = context.new_page()
        subscribing_to(page, somebody.subscription)
        page.goto("/settings/notices/")
        page.get_by_role("button", name="Turn on in this browser").click()
        expect(page.get_by_text("This browser,")).to_be_visible()
        page.get_by_role("button", name="Send a test").click()
        expect(page.get_by_text("Sent. It should")).to_be_visible()
        assert somebody.shown[0]["body"] == "This is how you will be told."
        failed(goal)
        delivery.deliver()
        wait_until(lambda: len(somebody.shown) == 2)
        protocol, registrations = context.new_cdp_session(page), []
        protocol.on("ServiceWorker.workerRegistrationUpdated", lambda told: registrations.extend(told["registrations"]))
        protocol.send("ServiceWorker.enable")
        page.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
        wait_for(page, registrations)
        [worker] = context.service_workers
        worker.evaluate(KEEP)

        def arrive(message: dict[str, Any]) -> None:
            to = {"origin": live_server.url, "registrationId": registrations[-1]["registrationId"]}
            protocol.send("ServiceWorker.deliverPushMessage", to | {"data": json.dumps(message)})

        arrive(somebody.shown[1])
        wait_until(lambda: Receipt.objects.filter(state="shown").exists())
        shown = worker.evaluate("[kept[0].title, kept[0].body, kept[0].data.url]")
        assert shown == ["Failed: Move to Graz", "The model gave an empty answer", somebody.shown[1]["url"]]
        for number in range(2, 6):  # they were kept while the device was off
            arrive(somebody.shown[0])
            wait_until(partial(worker.evaluate, f"kept.length === {number}"))
        assert worker.evaluate("kept.map(({ silent }) => silent)") == [False, False, False, True, True]
        page.reload()
        expect(page.get_by_text("push · Chrome on Linux: shown")).to_be_visible()
        remove = page.get_by_role("button", name="Remove Chrome on Linux")
        remove.click()
        page.get_by_role("button", name="Remove Chrome on Linux").click()
        expect(page.get_by_text("None yet.")).to_be_visible()
        assert not PushDevice.objects.exists()


RENEW = """([key, given]) => {
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => applicationServerKey === key ? given : null;
  let renewed;
  const waitUntil = (work) => { renewed = work; };
  self.dispatchEvent(Object.assign(new Event("pushsubscriptionchange"), { waitUntil }));
  return renewed;
}"""
"""The browser of the tests renews nothing by itself, and nobody but a browser makes an event that waits."""


def test_a_subscription_that_the_browser_renews_is_told_to_the_server(
    browser: Browser, live_server: LiveServer, user: User, service: PushService
) -> None:
    old, new = (service.browser(push.public_key()) for _ in range(2))
    with signed_in(browser, live_server.url, user, permissions=["notifications"]) as context:
        page = context.new_page()
        subscribing_to(page, old.subscription)
        page.goto("/settings/notices/")
        page.get_by_role("button", name="Turn on in this browser").click()
        expect(page.get_by_text("This browser,")).to_be_visible()
        [worker] = context.service_workers
        worker.evaluate(RENEW, [push.public_key(), json.loads(new.subscription)])
        page.get_by_role("button", name="Send a test").click()
        expect(page.get_by_text("Sent. It should")).to_be_visible()
        assert [len(somebody.shown) for somebody in (old, new)] == [0, 1]


MISSED = """(given) => {
  PushManager.prototype.getSubscription = async () => ({ unsubscribe: async () => { self.ended = true; } });
  PushManager.prototype.subscribe = async () => self.ended ? given : null;
}"""


def test_a_page_tells_the_server_of_a_subscription_that_it_has_missed(
    browser: Browser, live_server: LiveServer, user: User, service: PushService
) -> None:
    """The browser has renewed it while the server was away, which the server learns when it pushes to the old one."""
    old, lost, new = (service.browser(push.public_key()) for _ in range(3))
    with signed_in(browser, live_server.url, user, permissions=["notifications"]) as context:
        page = context.new_page()
        subscribing_to(page, old.subscription)
        page.goto("/settings/notices/")
        page.get_by_role("button", name="Turn on in this browser").click()
        expect(page.get_by_text("This browser,")).to_be_visible()
        [worker] = context.service_workers
        worker.evaluate(MISSED, json.loads(new.subscription))
        service.browsers.pop(f"/push/{old.address[-1]}")
        failed(create_goal(user, "Move to Graz"))
        delivery.deliver()
        assert PushDevice.objects.get().is_lost
        subscribing_to(page, lost.subscription)
        page.goto("/notes/")
        wait_until(lambda: not PushDevice.objects.get().is_lost)
        finished(create_goal(user, "Vienna half marathon"))
        delivery.deliver()
        assert {each["title"] for each in new.shown} == {"Failed: Move to Graz", "Finished: Vienna half marathon"}
        subscribing_to(page, new.subscription)
        with page.expect_response("**/looking/") as answered:
            page.goto("/notes/")
        assert answered.value.json()["renew"] is False


def test_nothing_is_said_of_pushes_where_they_were_never_switched_on_or_are_not_allowed(
    browser: Browser, live_server: LiveServer, user: User
) -> None:
    for granted in (["notifications"], []):
        with signed_in(browser, live_server.url, user, permissions=granted) as context:
            page = context.new_page()
            with page.expect_request("**/looking/") as asked:
                page.goto("/notes/")
            assert 'name="push"' not in (asked.value.post_data or "")
            assert 'name="path"' in (asked.value.post_data or "")


def test_a_browser_is_removed_also_when_it_cannot_unsubscribe(
    browser: Browser, live_server: LiveServer, user: User, service: PushService
) -> None:
    with signed_in(browser, live_server.url, user, permissions=["notifications"]) as context:
        page = context.new_page()
        subscribing_to(page, service.browser("").subscription)
        page.goto("/settings/notices/")
        page.get_by_role("button", name="Turn on in this browser").click()
        expect(page.get_by_text("This browser is told from now on.")).to_be_visible()
        page.add_init_script("PushManager.prototype.getSubscription = () => Promise.reject(new Error('no'));")
        page.reload()
        for _press in range(2):
            page.get_by_role("button", name="Remove").click()
        expect(page.get_by_text("None yet.")).to_be_visible()


def wait_for(page: Page, found: list[object]) -> None:
    while not found:
        page.evaluate("1")  # lets what the browser says come in


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_the_page_with_script_and_without(
    script: bool, browser: Browser, live_server: LiveServer, user: User, service: PushService
) -> None:
    goal = create_goal(user, "Move to Graz")
    push.register(user, service.browser("").subscription, "Firefox on Android")
    told = NoticeFactory(thread=goal.thread, said="Two quotes, 240 apart")
    ReceiptFactory(notice=told, channel="push", whom="Firefox on Android", state="unknown")
    ReceiptFactory(notice=told, whom=user.email)
    ReceiptFactory(notice=NoticeFactory(thread=goal.thread, kind="failed", said="The model gave an empty answer"))
    with signed_in(browser, live_server.url, user, java_script_enabled=script) as context:
        page = context.new_page()
        page.goto("/settings/notices/")
        expect(page.get_by_text("You have no quiet hours")).to_be_visible()
        UserAgent.objects.filter(user=user).update(quiet_from=time(22), quiet_to=time(7))
        page.reload()
        expect(page.get_by_text("Quiet from 22:00 to 07:00")).to_be_visible()
        page.get_by_label("Something has finished").uncheck()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        expect(page.get_by_label("Something has finished")).not_to_be_checked()
        expect(page.get_by_text("not known whether it arrived")).to_be_visible()
        expect(page.get_by_role("button", name="Turn on in this browser")).to_be_visible(visible=script)
        if script:
            assert_usable(page)


def test_where_somebody_looks_it_is_toasted_once_and_not_where_it_stands(
    browser: Browser, live_server: LiveServer, user: User
) -> None:
    here, there = create_goal(user, "Move to Graz"), create_goal(user, "Vienna half marathon")
    with signed_in(browser, live_server.url, user) as context:
        page = context.new_page()
        with page.expect_response("**/looking/"):
            page.goto(f"/goals/{here.pk}/")
        finished(here)
        finished(there, "The knee is well again. It may go on.")
        noticing.find()
        page.evaluate("document.dispatchEvent(new Event('agents-changed'))")
        toast = page.locator(".toast")
        expect(toast).to_have_text("Finished: Vienna half marathon. The knee is well againOpen")
        toast.get_by_role("link").focus()  # it stays as long
        other = context.new_page()
        other.goto("/notes/")
        other.wait_for_load_state("networkidle")
        expect(other.locator(".toast")).to_have_count(0)
        toast.get_by_role("link").click()
        page.wait_for_url(f"**/goals/{there.pk}/**")
        assert Notice.objects.filter(seen_at=None).count() == 0


def test_what_has_piled_up_is_toasted_as_one(browser: Browser, live_server: LiveServer, user: User) -> None:
    goals = [create_goal(user, title) for title in ("Move to Graz", "Vienna half marathon")]
    for n in range(6):
        finished(goals[n % 2], f"Answer number {n}. It is good.")
    failed(goals[0])
    noticing.find()
    with signed_in(browser, live_server.url, user) as context:
        page = context.new_page()
        page.goto("/notes/")
        toast = page.locator(".toast")
        expect(toast).to_have_text("1 failed, 6 finishedOpen")
        toast.get_by_role("link").click()
        page.wait_for_url(f"{live_server.url}/")
        expect(page.get_by_role("heading", name="Since you last looked")).to_be_visible()
