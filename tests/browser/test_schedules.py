"""A person says when an agent is to look in, pauses that, lets it begin at once and drops it (mission A12)."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from agents.models import UserAgent
from goals.models import Schedule
from goals.services import create_goal
from tests.browser.access import WIDE, assert_usable
from tests.browser.conftest import signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_person_sets_a_time_and_changes_their_mind(
    script: bool, browser: Browser, live_server: LiveServer, user: User
) -> None:
    UserAgent.objects.filter(user=user).update(time_zone="Europe/Vienna")
    goal = create_goal(user, "Move house")
    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page: Page = window.new_page()
    page.set_viewport_size(WIDE)
    page.goto(f"/goals/{goal.pk}/")
    if script:
        page.locator("#panel-schedule summary").click()
    else:
        page.goto(f"/threads/{goal.thread_id}/schedule/")
    if script:
        page.get_by_role("link", name="Set a time").click()
    expect(page.get_by_text("No times set")).to_be_visible()
    page.get_by_label("When").fill("now and then")
    page.get_by_label("What for").fill("Look for new flats.")
    page.get_by_role("button", name="Set the time").click()
    expect(page.get_by_role("alert")).to_contain_text("“now and then” is not understood")
    expect(page.get_by_label("What for")).to_have_value("Look for new flats.")
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_label("When").fill("weekdays at 8")
    if script:
        expect(page.locator("#time-said")).to_contain_text("Every weekday 08:00, next ")
    page.get_by_role("button", name="Set the time").click()
    expect(page.get_by_text("Set: every weekday 08:00. Next: ")).to_be_visible()
    expect(page.get_by_text("Times are those of Europe/Vienna.")).to_be_visible()
    times = page.get_by_role("list", name="Times")
    expect(times.get_by_text("Every weekday 08:00")).to_be_visible()
    expect(times.locator("p.as-written")).to_have_text("Look for new flats.")
    times.get_by_text("Change it").click()
    expect(times.get_by_label("When")).to_have_value("every weekday 08:00")
    times.get_by_label("When").fill("now and then")
    times.get_by_role("button", name="Save").click()
    expect(times.get_by_role("alert")).to_contain_text("“now and then” is not understood")
    times.get_by_label("When").fill("weekdays at 8")
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    times.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed: every weekday 08:00.")).to_be_visible()
    Schedule.objects.filter(kind="recurring").update(last_at=timezone.now(), last_result="unchanged")
    page.get_by_role("button", name="Pause: every weekday 08:00").click()
    expect(times.get_by_text("Comes when you resume it")).to_be_visible()
    expect(times.get_by_text("nothing new, no model was called")).to_be_visible()
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Resume: every weekday 08:00").click()
    expect(page.get_by_text("It goes on. Next: ")).to_be_visible()
    expect(times.get_by_text("Next ")).to_be_visible()
    page.get_by_role("button", name="Run now: every weekday 08:00").click()
    expect(page.get_by_text("The agent looks in now.")).to_be_visible()
    page.goto(f"/goals/{goal.pk}/")
    expect(page.get_by_text("Every weekday 08:00: Look for new flats.")).to_be_visible()
    expect(page.get_by_text("Looked in:")).to_be_visible()
    page.goto(f"/threads/{goal.thread_id}/schedule/")
    delete = page.get_by_role("button", name="Delete: every weekday 08:00")
    delete.click()
    if script:
        expect(delete).to_have_text("Delete it?")
        expect(delete).to_have_text("Delete")  # as long as nobody says so
        expect(delete.locator("svg")).to_be_visible()
        delete.click()
        delete.click()
    expect(page.get_by_text("It is deleted.")).to_be_visible()
