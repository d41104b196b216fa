"""Somebody looks at a conversation while what is behind it breaks. All of it runs as `bin/up` runs it."""

import re
import signal
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.access import WIDE
from tests.browser.looks import assert_equals_reload, send
from tests.faults.door import Goal
from tests.faults.mind import ANSWER
from tests.faults.site import OWNER, Site
from tests.llm_script import Reply

pytestmark = [pytest.mark.browser, pytest.mark.faults]

SLOW = 30_000
HALF = "These words were written by a worker that nobody will hear of again, and so "
WHOLE = "This is what the second worker says, from its first word to its last."
# Where a worker dies while somebody looks: it has taken the run, told its calls, recorded them, is about to end.
POINTS = ["D1.after", "D5.before", "D5.after", "D7.after", "D8.before", "D8.after"]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def goal(site: Site) -> Iterator[Goal]:
    (goal,) = site.goals(1)
    yield goal
    site.heal()
    site.quiet([goal])


@pytest.fixture(scope="module")
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """A window of the owner, who has signed in by the form."""
    opened = browser.new_context(viewport=WIDE, base_url=site.door.address, reduced_motion="reduce")
    page = opened.new_page()
    page.goto("/accounts/login/")
    page.get_by_label("E-mail").fill(OWNER["WAYMARK_OWNER_EMAIL"])
    page.get_by_label("Password", exact=True).fill(OWNER["WAYMARK_OWNER_PASSWORD"])
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "login" not in address)
    page.close()
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, goal: Goal) -> Iterator[Page]:
    opened = context.new_page()
    yield opened
    opened.close()


def look_at(page: Page, goal: Goal) -> None:
    page.goto(f"/goals/{goal.id}/")
    expect(page.locator(".bar .live").first).to_have_text("Live")


def assert_ready(page: Page) -> None:
    """Nothing is at work any more, nothing half written is left, and one can go on."""
    expect(page.locator("[data-stop]")).to_have_count(0, timeout=SLOW)
    expect(page.locator(".say[aria-busy]")).to_have_count(0)
    expect(page.locator(".step[data-state=running]")).to_have_count(0)
    expect(page.locator(".callout")).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_be_editable()


def test_a_worker_killed_in_mid_sentence_leaves_a_conversation_that_goes_on(page: Page, site: Site, goal: Goal) -> None:
    first, second = threading.Event(), threading.Event()
    site.mind.scripted["How far"] = iter([Reply(HALF * 2, hold=first), Reply(WHOLE, hold=second)])
    look_at(page, goal)
    with site.worker() as victim:
        send(page, "How far should I run?")
        expect(page.locator(".say[aria-busy]")).to_contain_text("nobody will hear of again", timeout=SLOW)
        victim.kill()
        first.set()
    with site.worker():
        expect(page.locator(".say[aria-busy]")).to_have_text(re.compile("^This is what the second"), timeout=SLOW)
        second.set()
        expect(page.locator(".say .prose")).to_have_text([WHOLE], timeout=SLOW)
        assert_ready(page)
        assert "nobody will hear" not in page.locator("#turns").inner_text()
        assert_equals_reload(page)
        send(page, "do: end")
        expect(page.locator(".say .prose")).to_have_text([WHOLE, ANSWER], timeout=SLOW)
        assert_ready(page)
        assert_equals_reload(page)


@pytest.mark.trials
def test_a_worker_killed_at_any_moment_leaves_a_conversation_that_goes_on(page: Page, site: Site, goal: Goal) -> None:
    look_at(page, goal)
    for count, point in enumerate(POINTS, 1):
        with site.worker(point=point) as victim:
            send(page, f"{point} do: jot put jot")
            assert victim.is_dead(30), f"no run came to {point}"
        with site.worker():
            expect(page.locator(".turn")).to_have_count(count, timeout=SLOW)
            expect(page.locator(".turn").last.locator(".say .prose")).to_have_text([ANSWER], timeout=SLOW)
            assert_ready(page)
            expect(page.locator(".say .prose")).to_have_text([ANSWER] * count)
            expect(page.locator(".turn").last.locator(".step")).to_have_count(3)
            assert_equals_reload(page)


def test_without_valkey_a_page_asks_for_the_answer_and_is_live_again_with_it(
    page: Page, site: Site, goal: Goal
) -> None:
    first, second = threading.Event(), threading.Event()
    site.mind.scripted["How far"] = iter([Reply(HALF * 2 + WHOLE, hold=first)])
    site.mind.scripted["And then"] = iter([Reply(HALF * 2, hold=second)])
    page.clock.install()
    look_at(page, goal)
    with site.worker():
        send(page, "How far should I run?")
        expect(page.locator(".say[aria-busy]")).to_contain_text("nobody will hear of again", timeout=SLOW)
        site.end(site.valkey, signal.SIGKILL)
        expect(page.locator(".bar .live").first).to_have_text("Reconnecting", timeout=SLOW)
        first.set()
        assert site.quiet([goal])
        expect(page.locator("[data-stop]")).to_have_count(1)
        page.clock.run_for(30_000)
        expect(page.locator(".say .prose")).to_contain_text([WHOLE], timeout=SLOW)
        assert_ready(page)
        expect(page.locator(".bar .live").first).to_have_text("Reconnecting")
        assert_equals_reload(page)
        expect(page.locator(".bar .live").first).to_have_text("Reconnecting", timeout=SLOW)
        send(page, "And now?")
        expect(page.locator(".ask").last).to_contain_text("And now?")
        site.spawn(site.valkey)
        expect(page.locator(".bar .live").first).to_have_text("Live", timeout=SLOW)
        expect(page.locator(".say .prose")).to_have_count(2, timeout=SLOW)
        assert_ready(page)
        send(page, "And then?")
        expect(page.locator(".say[aria-busy]")).to_contain_text("nobody will hear of again", timeout=SLOW)
        second.set()
        expect(page.locator(".say .prose")).to_have_count(3, timeout=SLOW)
        assert_ready(page)
        assert_equals_reload(page)


def test_a_sentence_that_valkey_forgets_half_way_goes_on_on_the_page(page: Page, site: Site, goal: Goal) -> None:
    hold = threading.Event()
    site.mind.scripted["How far"] = iter([Reply(HALF * 2 + WHOLE, hold=hold)])
    look_at(page, goal)
    with site.worker():
        send(page, "How far should I run?")
        expect(page.locator(".say[aria-busy]")).to_contain_text("nobody will hear of again", timeout=SLOW)
        site.end(site.valkey, signal.SIGKILL)
        expect(page.locator(".bar .live").first).to_have_text("Reconnecting", timeout=SLOW)
        site.spawn(site.valkey)
        expect(page.locator(".bar .live").first).to_have_text("Live", timeout=SLOW)
        expect(page.locator(".say[aria-busy]")).to_contain_text("nobody will hear of again", timeout=SLOW)
        hold.set()
        expect(page.locator(".say .prose")).to_contain_text([WHOLE], timeout=SLOW)
        assert_ready(page)
        assert_equals_reload(page)


def test_what_came_up_elsewhere_while_the_line_was_cut_is_there_once_it_is_back(
    page: Page, site: Site, goal: Goal
) -> None:
    look_at(page, goal)
    site.end(site.valkey, signal.SIGKILL)
    expect(page.locator(".bar .live").first).to_have_text("Reconnecting", timeout=SLOW)
    (other,) = site.goals(1)
    expect(page.locator(f"#sidebar-body a[href='/goals/{other.id}/']")).to_have_count(0)
    site.spawn(site.valkey)
    expect(page.locator(".bar .live").first).to_have_text("Live", timeout=SLOW)
    expect(page.locator(f"#sidebar-body a[href='/goals/{other.id}/']")).to_be_visible()
