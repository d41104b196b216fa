"""Files of a goal: given, saved, deleted and back again, with a script and without one."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from goals.services import create_goal
from tests.browser.access import assert_usable
from tests.browser.conftest import signed_in
from tools import files
from tools.file_models import Writer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_files_are_given_saved_deleted_and_back_again(
    script: bool, browser: Browser, live_server: LiveServer, user: User, settings: Settings, tmp_path: Path
) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    goal = create_goal(user, "Run a half marathon")
    files.write(goal.thread_id, "plans/week 1.md", iter([b"# Easy\n"]), files.Hand(Writer.AGENT))
    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page: Page = window.new_page()
    page.goto(f"/goals/{goal.pk}/")
    panel = page.locator("#panel-files")
    expect(panel.get_by_text("plans/week 1.md")).to_be_visible()
    panel.get_by_role("link", name="All files").click()

    page.get_by_label("Add files").set_input_files({"name": "log.csv", "mimeType": "text/csv", "buffer": b"1,2\n"})
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name="log.csv", exact=True)).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="plans/week 1.md", exact=True).click()
    assert Path(saved.value.path()).read_text() == "# Easy\n"
    assert saved.value.suggested_filename == "week 1.md"

    page.get_by_role("button", name="Delete plans/week 1.md").click()
    expect(page.get_by_text("“plans/week 1.md” is deleted.")).to_be_visible()
    expect(page.get_by_role("link", name="plans/week 1.md", exact=True)).to_have_count(0)
    if script:
        assert_usable(page)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="plans/week 1.md", exact=True)).to_be_visible()
    if script:
        assert_usable(page)
    window.close()
