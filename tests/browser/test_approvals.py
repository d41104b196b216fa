"""The inbox of what waits for a person's word, in a real browser, and what they let their agents do."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from goals.models import Goal
from memory.models import AgentRun, Author, RunStatus
from memory.notes import create_note
from tests.browser.access import PHONE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentActionFactory, AgentRunFactory, ApprovalFactory, GoalFactory
from tools import trust
from tools.models import Approval, ApprovalState, Cause

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, user: User) -> Iterator[Page]:
    window = signed_in(browser, live_server.url, user)
    yield window.new_page()
    window.close()


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory.create(user=user, title="Move to Graz")
    Goal.objects.update(modes={"update_note": "ask"})
    goal.thread.sources = ["hofer-umzuege.example"]
    goal.thread.save()
    return goal


def proposed(
    goal: Goal, tool: str = "update_note", arguments: dict[str, object] | None = None, **more: object
) -> Approval:
    """A call that waits, if nothing else is said a change of a note; its run is over."""
    run: AgentRun = AgentRunFactory.create(thread=goal.thread, status=RunStatus.SUCCEEDED)
    if arguments is None:
        note = create_note(goal.thread, "Offer", "Friday, 11 December", Author.AGENT)
        arguments = {"id": str(note.pk), "body": "Saturday, 12 December\nat 7:30"}
    call = {"action__run": run, "action__tool": tool, "action__arguments": arguments}
    return ApprovalFactory.create(**call, action__reversal="undoable", cause=Cause.CHOSEN, **more)


@pytest.fixture
def waiting(goal: Goal) -> list[Approval]:
    """Three that wait, one with the words of strangers, and of what was decided before some of each kind."""
    for _ in range(10):
        approval = proposed(goal, state=ApprovalState.APPROVED, decided_at=timezone.now())
        type(approval.action).objects.filter(pk=approval.action.pk).update(status="started")
        type(approval.action).objects.filter(pk=approval.action.pk).update(status="done", finished_at=timezone.now())
    run = AgentRunFactory.create(thread=goal.thread, status=RunStatus.SUCCEEDED)
    AgentActionFactory(run=run, status="unknown", tool="web_fetch", error="It may have happened.")
    found = [proposed(goal), proposed(goal, sources=["hofer-umzuege.example"]), proposed(goal)]
    Approval.objects.filter(pk=found[1].pk).update(cause=Cause.UNTRUSTED)
    trust.grant(goal.user, goal.thread, "update_note", {"id": "1", "body": "a" * 200})
    return found


def test_the_pages_are_for_everybody(page: Page, goal: Goal, waiting: list[Approval]) -> None:
    for path in ("/approvals/", f"/goals/{goal.pk}/settings/", "/settings/assistant/"):
        for opened in ("[data-edit]", ":not([data-edit])"):
            page.goto(path)
            for form in page.locator(f".approval details{opened}").all():
                form.evaluate("(form) => { form.open = true }")
            assert_usable(page)


def test_all_is_decided_from_the_keyboard(page: Page, goal: Goal, waiting: list[Approval]) -> None:
    page.goto("/approvals/")
    first, second, third = (page.locator(f"#card-{each.action.pk}") for each in waiting)
    expect(page.locator(".approval").first).to_be_focused()
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(second).to_be_focused()
    page.keyboard.press("x")
    page.keyboard.type("a jax")
    expect(second.get_by_placeholder("Why not?")).to_have_value("a jax")
    second.get_by_role("button", name="Reject", exact=True).click()
    expect(second).to_have_count(0)
    first.focus()
    page.keyboard.press("e")
    expect(first.get_by_label("id")).to_be_focused()
    page.keyboard.press("Escape")
    expect(first).to_be_focused()
    page.keyboard.press("a")
    expect(first).to_have_count(0)
    states = dict(Approval.objects.filter(pk__in=[each.pk for each in waiting]).values_list("pk", "state"))
    assert [states[each.pk] for each in waiting] == ["approved", "rejected", "requested"]
    expect(third).to_be_visible()


def test_nothing_of_what_is_approved_is_hidden(page: Page, goal: Goal) -> None:
    letter = "\n".join(f"Line {number}" for number in range(100))
    approval = proposed(goal, tool="create_note", arguments={"body": letter, "title": "Offer"})
    page.goto("/approvals/")
    card = page.locator(f"#card-{approval.action.pk}")
    hides = "(part) => [...part.querySelectorAll('*')].filter((each) => each.scrollHeight > each.clientHeight + 1 &&"
    assert card.evaluate(hides + " getComputedStyle(each).overflowY !== 'visible').map((each) => each.className)") == []
    card.get_by_text("Edit…").click()
    field = card.get_by_label("body")
    assert field.evaluate("(each) => each.scrollHeight <= each.clientHeight + 1")
    assert card.locator("[data-edit] label").all_inner_texts() == ["Title", "Body"]


def test_one_panel_is_open_at_a_time_with_one_way_to_approve(page: Page, goal: Goal, waiting: list[Approval]) -> None:
    page.goto("/approvals/")
    card = page.locator(f"#card-{waiting[0].action.pk}")
    card.get_by_text("Reject…").click()
    card.get_by_text("Edit…").click()
    expect(card.get_by_placeholder("Why not?")).to_be_hidden()
    expect(card.locator("[data-kind=primary]").locator("visible=true")).to_have_text(["Approve it like this"])
    card.focus()
    page.keyboard.press("a")
    page.reload()
    expect(card).to_have_count(1)


def test_a_call_is_changed_and_approved_on_a_phone(page: Page, goal: Goal, waiting: list[Approval]) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/approvals/")
    card = page.locator(f"#card-{waiting[0].action.pk}")
    card.get_by_text("Edit…").click()
    card.get_by_label("body").fill("Sunday")
    card.get_by_role("button", name="Approve it like this").click()
    expect(card).to_have_count(0)
    instead = Approval.objects.get(cause=Cause.EDITED)
    assert instead.action.arguments["body"] == "Sunday"
    assert instead.state == ApprovalState.APPROVED


def test_trust_is_given_and_taken_back(page: Page, goal: Goal, waiting: list[Approval]) -> None:
    page.goto("/approvals/")
    page.get_by_role("button", name="Stop asking for this goal").click()
    page.get_by_text("It runs without asking now.").wait_for()
    assert trust.standing(goal.user).filter(digest="").exists()
    page.get_by_role("button", name="Ask again").first.click()
    page.get_by_text("It asks again from now on.").wait_for()
    assert not trust.standing(goal.user).filter(digest="").exists()


def test_a_tab_that_was_left_open_says_what_has_changed(page: Page, goal: Goal, waiting: list[Approval]) -> None:
    page.goto("/approvals/")
    Approval.objects.filter(pk=waiting[0].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    page.locator(f"#card-{waiting[0].action.pk}").get_by_role("button", name="Approve once").click()
    page.get_by_text("This has expired; nothing was done.").wait_for()
