"""The pack of a reflective companion: switched on, looked at, decided about, deleted and back again, with a script and
without one (mission D11)."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from goals.services import create_goal
from tests.browser.access import WIDE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentRunFactory, ThreadMessageFactory
from tools.parts import create_assessment, create_part, create_proposal

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SAID = "When my boss frowns, something in me goes quiet, and I want to hide."


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_person_switches_it_on_and_decides_about_what_is_kept(
    script: bool, browser: Browser, live_server: LiveServer, user: User
) -> None:
    goal = create_goal(user, "Be at ease at work")
    ThreadMessageFactory(thread=goal.thread, run=AgentRunFactory(thread=goal.thread), content=SAID)
    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page: Page = window.new_page()
    page.goto(f"/goals/{goal.pk}/settings/")
    page.get_by_label("Reflective companion").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Reflective companion")).to_be_checked()
    if script:
        assert_usable(page)

    quote = "something in me goes quiet"
    create_part(goal.thread, "Quiet one", "protector", {"fears": ["being seen"], "body": ["a tight throat"]}, [quote])
    create_assessment(goal.thread, "Tense, and looking for a way to speak up.", [quote])
    create_proposal(goal.thread, "Breathe out before you answer.", ["stranger.example"])
    page.set_viewport_size(WIDE)
    page.goto(f"/goals/{goal.pk}/")
    page.get_by_role("link", name="Parts of you").click()
    expect(page.get_by_text("a tight throat")).to_be_visible()
    expect(page.locator("dt", has_text="Role")).to_be_visible()
    if script:
        assert_usable(page)
    part = page.get_by_role("article", name="Quiet one")
    expect(part.get_by_text(SAID)).to_be_visible()
    expect(part.locator("mark")).to_have_text(quote)
    part.get_by_role("link", name="In the conversation").click()
    expect(page.get_by_text(SAID)).to_be_visible()
    page.go_back()

    part.get_by_role("button", name="Yes, this is a part of me").click()
    expect(page.get_by_text("“Quiet one” is confirmed.")).to_be_visible()
    expect(page.get_by_role("article", name="Quiet one").get_by_text("confirmed", exact=True)).to_be_visible()
    if script:
        assert_usable(page)
    page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Accepted: “Breathe out before you answer.”.")).to_be_visible()
    page.get_by_role("article", name="Quiet one").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("“Quiet one” is deleted.")).to_be_visible()
    expect(page.get_by_role("article", name="Quiet one")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("article", name="Quiet one").get_by_text("confirmed", exact=True)).to_be_visible()
    window.close()
