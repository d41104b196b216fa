"""A conversation in a real browser, with the web and worker processes of the product and the demo model."""

import re
import threading
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, Page, expect

from agents.live.announce import announce_action, announce_message
from agents.live.stream import redis_client
from agents.prices import set_price
from goals.models import Goal
from memory.models import AgentRun, Note, RunStatus, ThreadMessage
from tests.agents.engine.test_restart import SUMMARY, until_summed_up
from tests.browser.conftest import signed_in
from tests.browser.looks import LOOK, assert_equals_reload, send
from tests.factories import AgentRunFactory, ApprovalFactory, GoalFactory, ThreadMessageFactory, UserFactory, think_with
from tests.llm_script import Reply, Status
from tests.llm_server import LLMServer
from tests.processes import answers, wait_until, web, worker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MAIN_JOB = "Create a note about what I need for a half marathon in May"
SLOW = 30_000


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[str]:
    """The address of a web process, with a worker beside it that thinks slowly enough to look at."""
    redis_client().flushdb()
    with web() as address, worker(WAYMARK_DEMO_DELAY="0.04", WAYMARK_RETRY_HELD_SECONDS="0.05"):
        wait_until(lambda: answers(f"{address}/readyz"), 30)
        yield address


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory.create(user=user, title="Vienna half marathon")
    return goal


@pytest.fixture
def context(browser: Browser, site: str, user: User) -> Iterator[BrowserContext]:
    """A window; when it closes, every run has ended, so that nothing works on the rows of the next test."""
    opened = signed_in(browser, site, user)
    yield opened
    opened.close()
    wait_until(lambda: not AgentRun.objects.live().exists(), 30)


@pytest.fixture
def page(context: BrowserContext, goal: Goal) -> Iterator[Page]:
    """The goal's page, which must not complain while it is used."""
    troubles: list[str] = []
    opened = context.new_page()
    opened.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.goto(f"/goals/{goal.pk}/")
    expect(opened.locator(".bar .live").first).to_have_text("Live")
    yield opened
    assert troubles == []


def wait_for_end(page: Page, goal: Goal) -> None:
    wait_until(lambda: AgentRun.objects.filter(thread=goal.thread).exists(), 20)
    wait_until(lambda: not AgentRun.objects.live().filter(thread=goal.thread).exists(), 30)
    expect(page.locator("[data-stop]")).to_have_count(0, timeout=SLOW)
    expect(page.locator(".say[aria-busy]")).to_have_count(0, timeout=SLOW)


def test_the_main_job_in_front_of_ones_eyes(page: Page, goal: Goal) -> None:
    send(page, MAIN_JOB)
    expect(page.locator(".ask")).to_contain_text(MAIN_JOB)
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    expect(page.locator(".bar .chip")).to_contain_text("Working")
    expect(page.locator(".caret")).to_be_visible()
    expect(page.locator(".step", has_text="Created a note")).to_be_visible()
    wait_for_end(page, goal)
    note = Note.objects.get(thread=goal.thread)
    expect(page.locator("#panel-notes a").first).to_have_text(note.title)
    expect(page.locator(".say").last).to_contain_text("demonstration")
    expect(page.locator(".say-foot .end")).to_contain_text("step")
    expect(page.locator("#empty")).to_have_count(0)
    assert AgentRun.objects.get(thread=goal.thread).status == RunStatus.SUCCEEDED
    assert_equals_reload(page)


def test_what_was_done_is_undone_and_done_again_by_user_and_agent(page: Page, goal: Goal) -> None:
    """The page is told both ways, with the notes beside it."""
    send(page, MAIN_JOB)
    wait_for_end(page, goal)
    made = page.locator(".step", has_text="Created a note").first
    notes = page.locator("#panel-notes").get_by_text("Half marathon in May")
    expect(notes).to_have_count(1)
    made.get_by_role("button", name="Undo").click()
    expect(made).to_have_attribute("data-state", "undone")
    expect(notes).to_have_count(0)
    assert_equals_reload(page)
    made.get_by_role("button", name="Redo").click()
    expect(made).to_have_attribute("data-state", "done")
    expect(notes).to_have_count(1)
    send(page, "undo that")
    expect(page.locator(".step", has_text="Undid")).to_be_visible(timeout=SLOW)
    expect(made).to_have_attribute("data-state", "undone")
    wait_for_end(page, goal)
    expect(notes).to_have_count(0)
    assert_equals_reload(page)


def test_a_suggestion_is_sent_by_one_press(page: Page, goal: Goal) -> None:
    page.get_by_role("button", name=MAIN_JOB).click()
    expect(page.locator(".ask")).to_contain_text(MAIN_JOB)
    wait_for_end(page, goal)
    assert_equals_reload(page)


def test_what_the_month_has_cost_is_told_without_a_reload(page: Page, goal: Goal, llm: LLMServer) -> None:
    think_with(goal.user, llm.url)
    set_price(goal.user, "compatible", "test-model", input=1_000, output=1_000)
    notes = [("create_note", {"title": title, "body": "Sun."}) for title in ("Morning", "Noon", "Night")]
    llm.script([*(Reply(calls=[call]) for call in notes), Reply(text="Good morning.", first_token=2)])
    foot = page.locator(".sidebar .spend-head")
    expect(foot).to_contain_text("$0.00")
    send(page, "Good morning")
    wait_for_end(page, goal)
    expect(page.locator(".bar .live")).to_be_visible()  # while the cost beside it came and went
    expect(foot).not_to_contain_text("$0.00")
    told = foot.inner_text()
    page.reload()
    assert foot.inner_text() == told


def test_PRV_06_a_pause_of_the_models_provider_is_said(page: Page, goal: Goal, llm: LLMServer) -> None:
    hold = threading.Event()
    think_with(goal.user, llm.url)
    busy = Status(429, {"Retry-After": "4"}, {"error": {"message": "slow down"}})
    llm.script([busy, Reply(text="Here I am, after all", hold=hold)])
    send(page, "Anybody there?")
    chip = page.locator(".bar .chip")
    expect(chip).to_contain_text("Waiting for the model's provider", timeout=SLOW)
    expect(page.locator("#status")).to_have_text("Waiting for the model's provider.")
    assert_equals_reload(page)
    assert "Working" not in chip.inner_text()
    expect(page.locator(".say[aria-busy]")).to_contain_text("Here", timeout=SLOW)
    assert "Working" in chip.inner_text()
    assert "provider" not in chip.inner_text()
    hold.set()
    wait_for_end(page, goal)
    assert_equals_reload(page)


def test_a_model_that_fails_is_waited_for_in_front_of_ones_eyes(page: Page, goal: Goal, llm: LLMServer) -> None:
    think_with(goal.user, llm.url)
    llm.script([Status(529, body={"error": {"message": "Overloaded"}})] * 3 + [Reply(text="Here I am again.")])
    send(page, "Anybody there?")
    clock = page.locator(".callout time[data-until]")
    expect(clock).to_have_text(re.compile(r"in 0:\d\d"), timeout=SLOW)
    first = clock.inner_text()
    expect(clock).not_to_have_text(first)
    assert clock.inner_text() < first, "it counts down"
    expect(page.locator(".turn .callout")).to_contain_text("(1 of 2)")
    assert_equals_reload(page)
    send(page, "I am still here.")
    expect(page.locator("#queue")).to_contain_text("I am still here.")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".say .prose").last).to_have_text("Here I am again.", timeout=SLOW)
    wait_for_end(page, goal)
    expect(page.locator("time[data-until]")).to_have_count(0)
    expect(page.locator(".step", has_text="Waited for the model's server")).to_be_visible()
    assert_equals_reload(page)


def test_a_wait_for_the_model_can_be_stopped(page: Page, goal: Goal, llm: LLMServer) -> None:
    think_with(goal.user, llm.url)
    llm.script([Status(529, body={"error": {"message": "Overloaded"}})] * 3)
    send(page, "Anybody there?")
    page.locator(".turn .callout").get_by_role("button", name="Stop").click()
    expect(page.locator(".turn")).to_contain_text("Stopped by you", timeout=SLOW)
    wait_for_end(page, goal)
    assert_equals_reload(page)


def test_a_refused_history_starts_from_its_summary_by_a_press(page: Page, goal: Goal, llm: LLMServer) -> None:
    think_with(goal.user, llm.url)
    llm.always(until_summed_up)
    send(page, "How far on Sunday?")
    press = page.get_by_role("button", name="Start from the summary")
    expect(press).to_be_visible(timeout=SLOW)
    assert_equals_reload(page)
    press.click()
    expect(page.locator("#toasts")).to_contain_text("is being summed up")
    expect(page.locator(".say .prose")).to_have_text(["From the summary, then."], timeout=SLOW)
    wait_for_end(page, goal)
    expect(page.locator(".session-end")).to_contain_text(SUMMARY)
    expect(page.locator(".ask p")).to_have_text(["How far on Sunday?"] * 2)
    expect(press).to_have_count(0)
    assert_equals_reload(page)


def test_a_call_that_asks_is_answered_by_a_press(page: Page, goal: Goal) -> None:
    run = AgentRunFactory.create(thread=goal.thread)
    ThreadMessageFactory.create(thread=goal.thread, run=run, content="Note my shoes")
    approval = ApprovalFactory.create(action__run=run)
    about = {"action": str(approval.pk)}
    cell = ThreadMessageFactory.create(
        thread=goal.thread, run=run, source="agent", message_type="tool", content="", metadata=about
    )
    announce_message(cell, goal.user_id)
    announce_action(goal.thread, approval.pk)
    expect(page.locator(".step[data-state=waiting]")).to_contain_text("Needs your approval:")
    assert_equals_reload(page)
    page.get_by_text("Reject…").click()
    page.get_by_label("Why not").fill("Brown ones")
    announce_action(goal.thread, approval.pk)
    page.get_by_role("button", name="Reject").click()
    expect(page.locator(".ask").last).to_contain_text("Rejected:")
    expect(page.locator(".ask").last).to_contain_text("Brown ones")
    expect(page.get_by_role("button", name="Approve once")).to_have_count(0)
    wait_for_end(page, goal)
    assert_equals_reload(page)


def test_two_tabs_show_the_same(page: Page, context: BrowserContext, goal: Goal) -> None:
    other = context.new_page()
    other.goto(f"/goals/{goal.pk}/")
    expect(other.locator(".bar .live").first).to_have_text("Live")
    send(page, MAIN_JOB)
    expect(other.locator(".ask")).to_contain_text(MAIN_JOB)
    expect(other.locator(".caret")).to_be_visible()
    for tab in (page, other):
        wait_for_end(tab, goal)
    assert page.evaluate(LOOK) == other.evaluate(LOOK)
    assert_equals_reload(other)


def test_REN_03_a_reload_in_mid_stream_loses_and_doubles_nothing(page: Page, goal: Goal) -> None:
    send(page, MAIN_JOB)
    expect(page.locator(".say .caret")).to_be_visible()
    page.reload()
    wait_for_end(page, goal)
    assert_equals_reload(page)
    answer = ThreadMessage.objects.filter(thread=goal.thread, source="agent").last()
    assert answer is not None
    first_words = re.sub(r"[*_]", "", answer.content)[:40]
    expect(page.get_by_text(first_words)).to_have_count(1)


def test_REN_03_a_lost_socket_catches_up(page: Page, goal: Goal) -> None:
    send(page, MAIN_JOB)
    expect(page.locator(".say .caret")).to_be_visible()
    page.evaluate("() => document.querySelector('#live')._htmx.ws.connection.socket.close()")
    expect(page.locator(".bar .live").first).to_have_text("Reconnecting")
    expect(page.locator(".bar .live").first).to_have_text("Live")
    wait_for_end(page, goal)
    assert_equals_reload(page)


def test_what_one_opens_stays_open_while_the_agent_goes_on(page: Page, goal: Goal) -> None:
    send(page, MAIN_JOB)
    step = page.locator(".step", has_text="Created a note")
    step.locator("summary").click()
    expect(step.locator(".cell-body > dl")).to_contain_text("Result")
    wait_for_end(page, goal)
    expect(step.locator(".cell-body > dl")).to_be_visible()


def test_the_stop_button_stops_and_says_so(page: Page, goal: Goal) -> None:
    send(page, MAIN_JOB)
    expect(page.locator(".caret")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Stopped by you")).to_be_visible()
    wait_for_end(page, goal)
    assert AgentRun.objects.get(thread=goal.thread).status == RunStatus.CANCELLED
    assert_equals_reload(page)


def test_a_message_sent_meanwhile_waits_and_is_taken_up(page: Page, goal: Goal) -> None:
    send(page, MAIN_JOB)
    expect(page.locator(".caret")).to_be_visible()
    send(page, "Also check the insoles")
    expect(page.locator(".queue .ask")).to_contain_text("Also check the insoles")
    expect(page.locator("#turns .ask", has_text="Also check the insoles")).to_be_visible(timeout=SLOW)
    expect(page.locator(".queue .ask")).to_have_count(0)
    wait_for_end(page, goal)
    wait_until(lambda: not AgentRun.objects.live().exists(), 30)
    wait_for_end(page, goal)
    assert_equals_reload(page)


def test_the_sidebar_of_another_page_shows_who_is_at_work(page: Page, context: BrowserContext, goal: Goal) -> None:
    other = context.new_page()
    other.goto("/assistant/")
    expect(other.locator(".bar .live").first).to_have_text("Live")
    send(page, MAIN_JOB)
    working = other.locator("#sidebar-body .blaze[data-state=working]")
    jobs = other.locator("#tabbar a[href='/jobs/'] .badge")
    expect(working).to_have_count(1)
    expect(jobs).to_have_count(1)
    wait_for_end(page, goal)
    expect(working).to_have_count(0)
    expect(jobs).to_have_count(0)
    expect(other.locator("#sidebar-body [aria-current=page]")).to_contain_text("Assistant")


def test_earlier_turns_come_when_one_scrolls_up(context: BrowserContext, goal: Goal) -> None:
    run = AgentRunFactory.create(thread=goal.thread)
    for number in range(30):
        ThreadMessageFactory.create(thread=goal.thread, run=run, content=f"Question {number:02d} " + "words " * 80)
    page = context.new_page()
    page.goto(f"/goals/{goal.pk}/")
    expect(page.get_by_text("Question 29")).to_be_in_viewport()
    expect(page.get_by_text("Question 00")).to_have_count(0)

    def scrolled_to_the_first() -> bool:
        page.evaluate("() => scrollTo(0, 0)")
        return page.get_by_text("Question 00").count() == 1

    wait_until(scrolled_to_the_first)
    asked = page.locator(".ask p").all_inner_texts()
    assert [text[:11] for text in asked] == [f"Question {number:02d}" for number in range(30)]


def test_without_script_the_whole_job_can_be_done(browser: Browser, site: str, user: User, goal: Goal) -> None:
    context = signed_in(browser, site, user, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/goals/{goal.pk}/")
    page.get_by_label("Message", exact=True).fill(MAIN_JOB)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".ask")).to_contain_text(MAIN_JOB)
    wait_until(lambda: not AgentRun.objects.live().exists(), 30)
    page.reload()
    expect(page.locator(".step", has_text="Created a note")).to_be_visible()
    assert Note.objects.filter(thread=goal.thread).exists()
    context.close()


def test_without_a_socket_the_page_asks_for_what_it_missed(browser: Browser, site: str, user: User, goal: Goal) -> None:
    context = signed_in(browser, site, user)
    page = context.new_page()
    page.clock.install()
    page.route_web_socket(re.compile("/ws/"), lambda socket: socket.close(code=1013))
    page.goto(f"/goals/{goal.pk}/")
    send(page, MAIN_JOB)
    expect(page.locator(".ask")).to_contain_text(MAIN_JOB)
    wait_until(lambda: not AgentRun.objects.live().exists(), 30)
    page.clock.run_for(40_000)
    expect(page.locator(".step", has_text="Created a note")).to_be_visible()
    expect(page.locator("[data-stop]")).to_have_count(0)
    assert_equals_reload(page)
    context.close()


def test_one_user_does_not_see_what_another_does(page: Page, browser: Browser, site: str, goal: Goal) -> None:
    stranger = UserFactory.create()
    context = signed_in(browser, site, stranger)
    theirs = context.new_page()
    answer = theirs.goto(f"/goals/{goal.pk}/")
    assert answer is not None
    assert answer.status == 404
    theirs.goto("/assistant/")
    theirs.evaluate(
        "(id) => { window.got = []; const socket = new WebSocket(`ws://${location.host}/ws/threads/${id}/`);"
        " socket.onmessage = (event) => got.push(event.data); socket.onclose = (event) => got.push(event.code); }",
        str(goal.thread_id),
    )
    theirs.wait_for_function("() => window.got.length > 0")
    assert theirs.evaluate("() => window.got") == [4404]
    context.close()


def test_signing_out_elsewhere_ends_the_page(page: Page, context: BrowserContext) -> None:
    other = context.new_page()
    other.goto("/accounts/logout/")
    other.locator("form button").first.click()
    page.wait_for_url(re.compile("/accounts/login/"))
