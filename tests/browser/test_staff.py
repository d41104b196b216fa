"""The staff's pages and the API's own page in a real browser, under their content policies."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from agents.engine.kept import keep
from memory.models import AgentRun, Thread
from tests.browser.conftest import signed_in
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    HistoryEntryFactory,
    ModelCallFactory,
    ThreadFactory,
    UserFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page of a member of staff that must not complain."""
    staff: User = UserFactory.create(staff=True)
    context = signed_in(browser, live_server.url, staff)
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    opened.on("response", lambda answer: troubles.append(answer.url) if answer.status >= 400 else None)
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    yield opened
    assert troubles == []
    context.close()


@pytest.fixture
def thread() -> Thread:
    thread = ThreadFactory.create()
    run = AgentRunFactory.create(thread=thread)
    HistoryEntryFactory(thread=thread, seq=1, run=run)
    call = {"type": "tool_use", "id": "c1", "name": "create_note", "arguments": {"title": "Shoes"}, "problem": None}
    HistoryEntryFactory(thread=thread, seq=2, run=run, role="assistant", blocks=[call])
    AgentActionFactory(run=run)
    ModelCallFactory(run=run, cost="0.25")
    return thread


def test_the_description_of_the_api_is_drawn(page: Page) -> None:
    page.set_viewport_size({"width": 1200, "height": 4000})  # what is out of sight is not drawn
    page.goto("/api/v1/docs")
    page.get_by_text("Say something; the answer comes as events and messages").first.wait_for()
    operation = page.locator(".opblock", has_text="/api/v1/auth/login")
    operation.locator("button.opblock-summary-control").click()
    operation.get_by_text("wrong", exact=False).first.wait_for()


def test_the_pages_of_the_staff_keep_the_policy(page: Page, thread: Thread) -> None:
    page.goto(reverse("admin:index"))
    assert page.locator(".wm-health li").count() >= 10
    for model in ("memory_thread", "memory_agentrun", "agents_modelcall", "tools_agentaction", "auth_user"):
        page.goto(reverse(f"admin:{model}_changelist"))
        assert page.locator("#result_list tbody tr").count() >= 1, model


def test_the_costs_of_everybody_keep_the_policy(page: Page, thread: Thread) -> None:
    page.goto(reverse("admin:costs"))
    assert page.get_by_text("$0.25").count() >= 2
    page.get_by_label("By").select_option("goal")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("cell", name="Goal").first.wait_for()


def test_a_call_in_the_transcript_unfolds(page: Page, thread: Thread) -> None:
    page.goto(reverse("admin:memory_thread_change", args=[thread.pk]))
    call = page.locator('[data-role="assistant"] details')
    assert not call.locator("pre").is_visible()
    call.locator("summary").click()
    assert call.locator("pre").inner_text() == '{\n  "title": "Shoes"\n}'


def test_a_section_of_a_prompt_unfolds(page: Page, thread: Thread) -> None:
    kept = keep(thread.pk, "<core>\nBe brief.\n</core>\n", "[]")
    ModelCallFactory(run=AgentRun.objects.get(thread=thread), system=kept[0], tools=kept[1], from_seq=1, until_seq=2)
    page.goto(reverse("admin:agents_modelcall_changelist"))
    page.get_by_role("link", name="Show", exact=True).click()
    core = page.locator("details", has_text="core")
    assert not core.locator("pre").is_visible()
    core.locator("summary").click()
    assert "Be brief." in core.locator("pre").inner_text()


def test_the_pages_of_rq_are_drawn(page: Page) -> None:
    page.goto(reverse("django_rq:home"))
    page.get_by_text("default").first.wait_for()
