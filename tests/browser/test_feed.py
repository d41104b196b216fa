"""The feed and what is new, in a real browser."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from agents.services import assistant_of
from goals import feeds
from goals.feed import Feed, FeedItem
from goals.services import create_goal
from tests.browser.access import assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentRunFactory
from tests.goals.test_feed import happened

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_it_is_read_rated_dismissed_and_talked_about(
    script: bool, browser: Browser, live_server: LiveServer, user: User
) -> None:
    assistant = assistant_of(user)
    assistant.welcomed = True
    assistant.save()
    goal = create_goal(user, "Move to Graz")
    said = happened(goal, "Two quotes, 240 apart. The cheaper one has the parking.")
    feed = feeds.begin(assistant.thread, timezone.now())
    assert feed is not None
    Feed.objects.filter(pk=feed.pk).update(brief="Two quotes came in.", written_at=timezone.now())
    evidence = [{"of": "message", "id": str(said.pk), "said": "Two quotes, 240 apart"}]
    common = {"user": user, "feed": feed, "thread": goal.thread, "kind": "decision", "evidence": evidence}
    FeedItem.objects.create(
        **common, place=0, title="Which mover?", body="| Who | Price |\n|---|---|\n| Hofer | 1,180 |"
    )
    FeedItem.objects.create(**common, place=1, title="Boxes are cheap", body="Until Friday.")
    long = create_goal(user, "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenfabrikantenverband")
    FeedItem.objects.create(**common | {"thread": long.thread}, place=2, title=long.title, body=long.title)

    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page = window.new_page()
    page.goto("/")
    expect(page.get_by_text("Two quotes came in.")).to_be_visible()
    boxes, mover = (page.locator(".feed-item", has_text=title) for title in ("Boxes are cheap", "Which mover?"))
    boxes.get_by_role("button", name="Less like this").click()
    expect(boxes.get_by_role("button", name="Less like this")).to_have_attribute("aria-pressed", "true")
    boxes.get_by_role("button", name="Dismiss").click()
    expect(boxes).to_have_count(0)
    page.get_by_role("link", name="See it all").click()
    expect(page.get_by_role("link", name="Created a note Plan")).to_be_visible()
    if script:
        assert_usable(page)
    page.goto("/feed/")
    expect(page.get_by_text("Boxes are cheap")).to_be_visible()
    if script:
        assert_usable(page)
    mover.get_by_role("link", name="Two quotes, 240 apart").click()
    expect(page.get_by_role("heading", name="Move to Graz")).to_be_visible()
    page.goto("/")
    mover.get_by_role("button", name="Discuss").click()
    expect(page.locator("#turns").get_by_text("Which mover?")).to_be_visible()
    window.close()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_one_that_is_missing_is_tried_now(script: bool, browser: Browser, live_server: LiveServer, user: User) -> None:
    happened(create_goal(user, "Move to Graz"), "Two quotes, 240 apart.")
    thread = assistant_of(user).thread
    feed = feeds.begin(thread, timezone.now())
    assert feed is not None
    feed.run = AgentRunFactory.create(
        thread=thread,
        context_type="feed_generation",
        trigger="schedule",
        status="failed",
        reason="unreachable",
        error="The model's server could not be reached: connection refused. It failed permanently.",
        finished_at=timezone.now(),
    ).pk
    feed.save()

    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page = window.new_page()
    page.goto("/")
    expect(page.get_by_text("The model's server could not be reached: connection refused.")).to_be_visible()
    if script:
        assert_usable(page)
    page.get_by_role("button", name="Try now").click()
    expect(page.get_by_text("Your assistant takes it up.")).to_be_visible()
    expect(page.get_by_text("no feed came of it")).to_have_count(0)
    window.close()
