"""What was done, found again and taken back, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from goals.models import Goal
from memory.models import AgentRun, Note
from memory.notes import create_note, update_note
from tests.browser.access import PHONE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentActionFactory, AgentRunFactory, ApprovalFactory, GoalFactory, ThreadMessageFactory
from tools.builtin.notes import image, record

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, user: User) -> Iterator[Page]:
    window = signed_in(browser, live_server.url, user)
    yield window.new_page()
    window.close()


@pytest.fixture
def run(user: User) -> AgentRun:
    """A run with something of each kind."""
    goal: Goal = GoalFactory.create(user=user, title="Vienna half marathon")
    run: AgentRun = AgentRunFactory.create(thread=goal.thread)
    ThreadMessageFactory(thread=goal.thread, run=run, content="Please re-plan the next two weeks")
    plan, kept = create_note(goal.thread, "Plan", "Wed: easy run"), create_note(goal.thread, "Long run", "Sunday")
    changed(run, plan, "Wed: intervals")
    changed(run, kept, "Saturday")
    update_note(kept, body="Flat, along the Mur")
    sent = {"run": run, "tool": "mail", "effect": "non_idempotent", "finished_at": timezone.now()}
    AgentActionFactory(reversal="irreversible", summary="to Lend & Söhne", **sent)
    AgentActionFactory(run=run, tool="delete_note", status="error", error="There is no such note.")
    ApprovalFactory(action__run=run, action__summary="Quotes")
    return run


def changed(run: AgentRun, note: Note, body: str) -> None:
    before = image(note)
    update_note(note, body=body)
    undo = record(note, before, image(note)).model_dump(mode="json")
    AgentActionFactory(run=run, tool="update_note", summary=note.title, undo=undo, finished_at=timezone.now())


def test_the_pages_are_for_everybody(page: Page, run: AgentRun) -> None:
    for path in ("/activity/", "/activity/?q=plan&tool=update_note&since=2020-01-01", "/activity/?q=nowhere"):
        page.goto(path)
        assert_usable(page)
    page.goto(f"/activity/undo/?run={run.pk}")
    assert_usable(page)


def test_what_was_done_is_found_and_taken_back_on_a_phone(page: Page, run: AgentRun, tmp_path: Path) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/activity/")
    page.get_by_label("Search activity").fill("intervals mur")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("Nothing like that was done").wait_for()
    page.get_by_label("Search activity").fill("")
    page.get_by_label("Outcome").select_option("Can be undone")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".audit > li")).to_have_count(2)
    page.get_by_text("Export").click()
    with page.expect_download() as started:
        page.get_by_role("link", name="As CSV").click()
    started.value.save_as(tmp_path / "activity.csv")
    assert (tmp_path / "activity.csv").read_text().count("update_note") == 2
    page.get_by_label("Undo more than this: Changed a note Plan").click()
    page.get_by_role("link", name="Undo the whole run").locator("visible=true").click()
    expect(page.get_by_role("region", name="This stays").get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="Undo 1 action").click()
    page.get_by_text("1 action was taken back.").wait_for()
    expect(page.get_by_role("listitem").filter(has_text="It was changed since.")).to_have_count(1)
    assert dict(Note.objects.values_list("title", "body")) == {
        "Plan": "Wed: easy run",
        "Long run": "Flat, along the Mur",
    }
