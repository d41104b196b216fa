"""A question of an agent is answered by a press of a button (mission D2)."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from goals.services import create_goal
from memory.models import ThreadMessage
from tests.browser.access import PHONE, WIDE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentRunFactory, ThreadMessageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ANSWERS = ["The half marathon in Graz, in May", "Linz", "Neither, I would rather wait for the autumn"]


def test_an_answer_is_picked(browser: Browser, live_server: LiveServer, user: User) -> None:
    goal = create_goal(user, "Run a half marathon")
    run = AgentRunFactory(thread=goal.thread, status="succeeded")
    ThreadMessageFactory(thread=goal.thread, run=run, content="Sign me up for a race.")
    words = "Two races fit your plan.\n\n**Which one?** The entry for Graz closes on Friday."
    ThreadMessageFactory(thread=goal.thread, run=run, source="agent", content=words, metadata={"asks": ANSWERS})
    page: Page = signed_in(browser, live_server.url, user).new_page()
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        page.goto(f"/goals/{goal.pk}/")
        expect(page.get_by_role("group", name="Answers").get_by_role("button")).to_have_count(3)
        assert_usable(page)
    page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Linz").click()
    expect(page.locator(".ask").last).to_contain_text("Linz")
    expect(page.get_by_role("group", name="Answers")).to_have_count(0)
    assert ThreadMessage.objects.get(metadata__has_key="answers").content == "Linz"
