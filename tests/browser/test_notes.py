"""A note is written: its title is seen whole, however long it is."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from memory.models import Note
from tests.browser.access import PHONE, WIDE, assert_usable
from tests.browser.conftest import signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TITLE = "What one has to think of before one travels to the race in Vienna: shoes, gels, the bib, the hotel, a jumper"


def test_a_long_title_is_seen_whole_and_stays_one_line(browser: Browser, live_server: LiveServer, user: User) -> None:
    page: Page = signed_in(browser, live_server.url, user).new_page()
    page.goto("/notes/new/")
    title, text = page.get_by_label("Title"), page.get_by_label("Text")
    for viewport in (WIDE, PHONE):
        page.set_viewport_size(viewport)
        title.fill(TITLE)
        assert title.evaluate("(it) => it.scrollHeight <= it.clientHeight && it.scrollWidth <= it.clientWidth")
    title.press("Enter")
    expect(text).to_be_focused()
    assert_usable(page)
    page.get_by_role("button", name="Save note").click()
    expect(page.get_by_role("heading", name=TITLE)).to_have_count(1)
    assert Note.objects.get().title == TITLE
    page.set_viewport_size(WIDE)
    entry = page.locator("#note-items b")
    assert entry.evaluate("(it) => it.clientHeight < it.scrollHeight")  # the rest of it is one press away
