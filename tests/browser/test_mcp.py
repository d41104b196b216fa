"""MCP servers: named, signed in to, looked at, agreed to, changed and removed, with a script and without one."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.browser.access import assert_usable
from tests.browser.conftest import signed_in
from tests.mcp_server import fake_mcp, tool
from tests.oauth_server import fake_oauth, guard
from tools.mcp.models import McpServer
from tools.mcp.program_list import programs_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_server_is_named_looked_at_agreed_to_and_removed(
    script: bool, browser: Browser, live_server: LiveServer, user: User, settings: Settings
) -> None:
    with fake_mcp() as fake:
        settings.WAYMARK_FETCH_PRIVATE = [fake.place]
        fake.tools = [tool("look", "Look <img src=x onerror=alert(1)> up."), tool("odd", "", "oops")]
        page: Page = signed_in(browser, live_server.url, user, java_script_enabled=script).new_page()
        page.goto("/settings/")
        page.get_by_role("link", name="MCP servers").click()
        page.get_by_label("Name").fill("shop")
        page.get_by_label("Address").fill(fake.address)
        page.get_by_role("button", name="Add and test it").click()
        expect(page.get_by_text("no tools in use yet")).to_be_visible()
        expect(page.get_by_text("Look <img src=x onerror=alert(1)> up.")).to_be_visible()
        if script:
            assert_usable(page)
        page.get_by_label("It only reads").check()
        page.get_by_role("button", name="Agree to these tools").click()
        expect(page.get_by_text("1 tool in use")).to_be_visible()
        if script:
            assert_usable(page)
        expect(page.get_by_role("button", name="Test shop")).to_be_hidden()
        page.locator("summary", has_text="shop").click()
        page.get_by_label("More for shop").click()
        page.get_by_role("button", name="Remove").click()
        if script:
            page.get_by_role("button", name="Remove it").click()
        expect(page.get_by_text("The server and its credentials are removed.")).to_be_visible()
    assert not McpServer.objects.exists()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_somebody_signs_in_elsewhere_and_comes_back(
    script: bool, browser: Browser, live_server: LiveServer, user: User, settings: Settings
) -> None:
    with fake_mcp() as fake, fake_oauth(fake.address) as oauth:
        settings.WAYMARK_FETCH_PRIVATE = [fake.place, oauth.place]
        fake.tools = [tool("look", "Look it up.")]
        guard(fake, oauth)
        page: Page = signed_in(browser, live_server.url, user, java_script_enabled=script).new_page()
        page.goto("/settings/mcp/")
        page.get_by_label("Name").fill("shop")
        page.get_by_label("Address").fill(fake.address)
        page.get_by_role("button", name="Add and test it").click()
        if script:
            assert_usable(page)
        page.get_by_role("button", name=f"Sign in at {oauth.place}").click()
        expect(page.get_by_text("You are signed in.")).to_be_visible()
        expect(page.get_by_text("Look it up.")).to_be_visible()
        assert page.url == f"{live_server.url}/settings/mcp/"
        page.get_by_role("link", name="Change").click()
        page.get_by_label("Name").fill("The shop")
        if script:
            assert_usable(page)
        page.get_by_role("button", name="Save and test it").click()
        expect(page.get_by_text("Its tools begin with")).to_be_visible()
        page.get_by_label("More for The shop").click()
        if script:
            assert_usable(page)
        page.get_by_role("link", name="Sign in again").click()
        if script:
            assert_usable(page)
        page.get_by_role("button", name=f"Sign in at {oauth.place}").click()
        expect(page.get_by_text("You are signed in.")).to_be_visible()
        page.get_by_label("More for The shop").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("You are signed out there.")).to_be_visible()
    assert oauth.refusals == []


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_who_may_start_programs_says_which_of_both_it_is(
    script: bool, browser: Browser, live_server: LiveServer, user: User, settings: Settings
) -> None:
    settings.WAYMARK_MCP_COMMANDS = programs_from('[["/bin/one"], ["/bin/two"]]')
    user.is_staff = True
    user.save()
    page: Page = signed_in(browser, live_server.url, user, java_script_enabled=script).new_page()
    page.goto("/settings/mcp/")
    expect(page.get_by_label("Address", exact=True)).to_be_visible()
    expect(page.get_by_label("Program", exact=True)).to_be_hidden()
    page.get_by_label("A program on this machine").check()
    expect(page.get_by_label("Address", exact=True)).to_be_hidden()
    if script:
        assert_usable(page)
    page.get_by_label("Name").fill("two")
    page.get_by_label("Program", exact=True).select_option("/bin/two")
    page.get_by_role("button", name="Add and test it").click()
    expect(page.get_by_text("does not answer")).to_be_visible()
    assert McpServer.objects.get().argv == ["/bin/two"]
