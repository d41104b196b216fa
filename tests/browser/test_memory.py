"""A person looks at what an agent keeps in mind, asks why, corrects it, and takes that back (missions E1 and H9)."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from goals.services import create_goal
from tests.browser.access import WIDE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentActionFactory, LearningFactory, ThreadMessageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SAID = "I only ever run before work, in the evening the children want me."


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_person_asks_why_corrects_it_and_takes_that_back(
    script: bool, browser: Browser, live_server: LiveServer, user: User
) -> None:
    goal = create_goal(user, "Run a half marathon")
    message = ThreadMessageFactory(thread=goal.thread, content=SAID)
    action = AgentActionFactory(thread=goal.thread, user=user, tool="manage_learning")
    LearningFactory(thread=goal.thread, text="Runs before work.", message=message, action=action.pk)
    LearningFactory(thread=goal.thread, text="Is afraid of dogs.", sources=["physio.example"])
    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page: Page = window.new_page()
    page.set_viewport_size(WIDE)
    page.goto(f"/goals/{goal.pk}/")
    page.locator("#panel-memory a[href$='#l1']").click()
    first = page.locator("#l1")
    first.get_by_text("Why do you think this?").click()
    expect(first.get_by_text(SAID)).to_be_visible()
    first.get_by_text("Correct it").click()
    first.get_by_label("What is right").fill("Is afraid of dogs.")
    first.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_have_text("Number 2 says this already.")
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_label("What is right").first.fill("Runs at noon.")
    page.locator("#l1").get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").get_by_text("Corrected: Runs at noon.")).to_be_visible()
    page.get_by_text("What it thought before").click()
    expect(page.get_by_text("replaced by number 3")).to_be_visible()
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#l1 p", has_text="Runs before work.")).to_be_visible()
    page.get_by_role("button", name="Take number 2 back").click()
    expect(page.get_by_text("Taken back: Is afraid of dogs.")).to_be_visible()
    page.get_by_label("In a sentence").fill("Wants figures in km.")
    page.get_by_role("button", name="Keep in mind").click()
    expect(page.locator("#l3 p", has_text="Wants figures in km.")).to_be_visible()
