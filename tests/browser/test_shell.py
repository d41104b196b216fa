"""The frame of the pages in a real browser: policy, accessibility, drafts, dialogs, themes, hostile text.

Served without websockets, so it also shows that pages work without them.
"""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, expect
from pytest_django.live_server_helper import LiveServer

from goals import measuring
from goals.models import Goal
from memory.models import Source
from tests.agents.live.test_markdown import PAYLOADS
from tests.browser.access import PHONE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    GoalFactory,
    LearningFactory,
    ModelCallFactory,
    ModelPriceFactory,
    NoteFactory,
    ThreadMessageFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGES = ["/", "/notes/", "/notes/new/", "/activity/", "/jobs/", "/settings/", "/settings/models/", "/settings/devices/"]
PAGES += [
    "/settings/appearance/",
    "/settings/budget/",
    "/settings/costs/",
    "/goals/new/",
    "/assistant/",
    "/welcome/",
    "/welcome/goal/",
]


@pytest.fixture
def goal(user: User) -> Goal:
    goal = GoalFactory.create(user=user, title="Vienna half marathon")
    run = AgentRunFactory.create(thread=goal.thread)
    ThreadMessageFactory.create(thread=goal.thread, run=run, source=Source.USER, content="My knee hurts.")
    ThreadMessageFactory.create(thread=goal.thread, run=run, source=Source.AGENT, content="**Rest** for three days.")
    ModelCallFactory.create(run=run, provider="openai", model="gpt-5-mini", cost="0.25", input_tokens=5000)
    ModelCallFactory.create(run=run, provider="compatible", model="qwen3", cost=None)
    ModelPriceFactory.create(user=user)
    NoteFactory.create(user=user, thread=goal.thread, title="Two-week plan", body="## Week 49\n- Mon: ride")
    return goal


@pytest.fixture
def context(browser: Browser, live_server: LiveServer, user: User) -> Iterator[BrowserContext]:
    window = signed_in(browser, live_server.url, user)
    yield window
    window.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that must not complain: no violated policy, no error of a script, no dialog, no call to another host."""
    opened = context.new_page()
    troubles: list[str] = []

    def on_console(said: ConsoleMessage) -> None:
        if _is_trouble(said.text, said.type):
            troubles.append(said.text)

    def on_dialog(dialog: Dialog) -> None:
        troubles.append(dialog.message)
        dialog.dismiss()

    def on_request(request: Request) -> None:
        if "localhost" not in request.url:
            troubles.append(request.url)

    opened.on("console", on_console)
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("dialog", on_dialog)
    opened.on("request", on_request)
    yield opened
    assert troubles == []


def _is_trouble(text: str, kind: str) -> bool:
    """This server has no websockets, which the browser and htmx both report; 503 is made by a test."""
    expected = ("WebSocket", "htmx:ws:error", "status of 503")
    return kind in ("error", "warning") and not any(words in text for words in expected)


def test_every_page_is_accessible_and_fits(page: Page, goal: Goal) -> None:
    today = measuring.today_of(goal.user_id)
    measuring.set_target(goal.thread, "Half marathon time", 115, today + timedelta(days=100), "min")
    for weeks in range(4):
        measuring.measure(goal.thread, 122 + weeks, today - timedelta(weeks=weeks))
    of_goal = [f"/goals/{goal.pk}/{part}" for part in ("", "settings/", "notes/", "measured/")]
    for path in [*PAGES, *of_goal, "/search/?q=knee"]:
        page.goto(path)
        assert_usable(page)


def test_narrow_and_wide_short_and_long_pages_begin_at_the_same_place(page: Page, goal: Goal) -> None:
    AgentActionFactory.create_batch(40, run__thread=goal.thread)
    lefts = set()
    for path in ("/activity/", "/activity/undo/?since=2020-01-01T00:00:00%2B00:00", "/settings/", "/search/"):
        page.goto(path)
        lefts.add(page.locator("h1").evaluate("(title) => title.getBoundingClientRect().left"))
    assert len(lefts) == 1


def test_what_a_finger_presses_is_large_enough(page: Page, goal: Goal) -> None:
    LearningFactory.create(thread=goal.thread)
    page.set_viewport_size(PHONE)
    page.goto(f"/goals/{goal.pk}/")
    page.get_by_role("button", name="Notes, helpers and jobs").click()
    page.locator("#panel details").evaluate_all("(folds) => folds.forEach((fold) => { fold.open = true })")
    assert too_small(page, "#panel :is(a, button, summary)") == []
    page.goto("/settings/appearance/")
    assert too_small(page, ".seg label, .tabbar .tab, .settings-nav a") == []
    page.goto(f"/goals/{goal.pk}/settings/")
    assert too_small(page, ".check label, .seg label") == []


def test_the_strip_of_settings_shows_where_one_is(page: Page) -> None:
    page.set_viewport_size(PHONE)
    for path in ("/settings/", "/settings/costs/", "/settings/appearance/"):
        page.goto(path)
        expect(page.locator(".settings-nav [aria-current]")).to_be_in_viewport(ratio=1)


def test_a_goal_far_down_the_list_is_in_sight_when_it_is_open(page: Page, goal: Goal) -> None:
    goal.thread.active_at -= timedelta(days=30)
    goal.thread.save()
    for n in range(30):
        GoalFactory(user=goal.user, title=f"Another one {n}")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/goals/{goal.pk}/")
    expect(page.locator("#sidebar-body [aria-current=page]")).to_be_in_viewport()


def test_a_keyboard_reaches_the_composer_by_one_link(page: Page, goal: Goal) -> None:
    for path in ("/", "/assistant/", f"/goals/{goal.pk}/"):
        page.goto(path)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to message")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".composer textarea")).to_be_focused()


def too_small(page: Page, what: str) -> list[str]:
    """The words of those that are there and lower than 44 pixels."""
    low = "(all) => all.map((each) => [each.innerText, each.getBoundingClientRect().height])"
    found = page.locator(what).locator("visible=true").evaluate_all(low)
    assert found
    return [words for words, height in found if height < 44]


def test_ren_02_hostile_text_runs_nowhere_and_calls_nobody(page: Page, user: User, goal: Goal) -> None:
    text = "\n\n".join(PAYLOADS)
    for payload in PAYLOADS:
        ThreadMessageFactory.create(thread=goal.thread, source=Source.USER, content=payload)
        ThreadMessageFactory.create(thread=goal.thread, source=Source.AGENT, content=payload)
    ThreadMessageFactory.create(thread=goal.thread, source=Source.ERROR, content=text)
    note = NoteFactory.create(user=user, thread=goal.thread, title=PAYLOADS[0], body=text)
    Goal.objects.filter(pk=goal.pk).update(title=PAYLOADS[1][:120])
    for path in ("/", f"/goals/{goal.pk}/", "/notes/", f"/goals/{goal.pk}/settings/", f"/notes/{note.pk}/"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
    page.get_by_text("Read", exact=True).click()
    page.wait_for_timeout(300)
    assert page.locator("#note-read").get_by_text("<iframe srcdoc").count() == 1


def test_a_draft_survives_a_reload_and_goes_when_it_was_sent(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Message to your assistant").fill("Buy new shoes")
    page.reload()
    field = page.get_by_label("Message to your assistant")
    assert field.input_value() == "Buy new shoes"
    field.press("Enter")
    page.wait_for_url("**/assistant/?sent=*")
    assert page.get_by_text("Buy new shoes").count() == 1
    page.goto("/")
    assert page.get_by_label("Message to your assistant").input_value() == ""


def test_what_could_not_be_sent_stays_with_its_id(page: Page, goal: Goal) -> None:
    page.goto(f"/goals/{goal.pk}/")
    field, hidden = page.get_by_label("Message", exact=True), page.locator("#composer [name=client_message_id]")
    page.route("**/messages", lambda route: route.fulfill(status=503, body=""))
    field.fill("Is it the shoes?")
    before = hidden.input_value()
    field.press("Enter")
    page.get_by_text("That did not work.").wait_for()
    assert (field.input_value(), hidden.input_value()) == ("Is it the shoes?", before)


def test_shift_enter_breaks_the_line_and_blank_text_is_not_sent(page: Page, goal: Goal) -> None:
    page.goto(f"/goals/{goal.pk}/")
    field = page.get_by_label("Message", exact=True)
    field.press("Enter")
    field.fill("one")
    field.press("Shift+Enter")
    field.press_sequentially("two")
    assert field.input_value() == "one\ntwo"
    assert page.locator(".ask").count() == 1


def test_a_goal_is_made_in_the_dialog_which_gets_the_focus(page: Page) -> None:
    page.goto("/")
    page.get_by_label("New goal").first.click()
    page.keyboard.type("Learn Go")
    page.keyboard.press("Enter")
    page.wait_for_url("**/goals/*/")
    assert page.locator("h1").inner_text() == "Learn Go"


def test_the_theme_changes_at_once_and_is_there_before_the_next_page_is_drawn(page: Page) -> None:
    page.goto("/settings/appearance/")
    page.get_by_text("Dark", exact=True).click()
    page.wait_for_load_state("networkidle")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    answer = page.goto("/")
    assert answer
    assert 'data-theme="dark"' in answer.text()


def test_the_editor_saves_by_itself(page: Page, goal: Goal) -> None:
    page.goto("/notes/")
    with page.expect_response(lambda answer: answer.request.method == "POST" and "/notes/" in answer.url):
        page.get_by_label("Text").fill("new words")
    expect(page.locator("#note-saved")).to_contain_text("Saved")
    page.reload()
    assert page.get_by_label("Text").input_value() == "new words"


def test_a_code_block_can_be_copied(context: BrowserContext, page: Page, goal: Goal) -> None:
    ThreadMessageFactory.create(thread=goal.thread, source=Source.AGENT, content="```py\nimport csv\n```")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/goals/{goal.pk}/")
    page.locator(".code [data-copy]").click()
    page.locator("#status", has_text="Copied").wait_for(state="attached")
    assert page.evaluate("() => navigator.clipboard.readText()") == "import csv\n"


def test_deleting_asks_once_more(page: Page, goal: Goal) -> None:
    page.goto(f"/goals/{goal.pk}/settings/")
    page.get_by_role("button", name="Delete goal").click()
    assert Goal.objects.filter(pk=goal.pk).exists()
    page.get_by_role("button", name="Delete for good?").click()
    page.wait_for_url("**/")
    assert not Goal.objects.filter(pk=goal.pk).exists()
