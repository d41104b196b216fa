"""Every card of a conversation that waits, asks or has failed, and the pages about it: for everybody, on any screen."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext
from pytest_django.live_server_helper import LiveServer

from agents.models import TaskStatus
from memory.degrade import HISTORY_REFUSED
from memory.models import AgentRun, RunStatus, Source, Thread
from tests.browser.access import PHONE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import (
    AgentActionFactory,
    AgentHistoryFactory,
    AgentRunFactory,
    AgentTaskFactory,
    ApprovalFactory,
    GoalFactory,
    HealthReportFactory,
    HistoryEntryFactory,
    ModelCallFactory,
    ThreadMessageFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "https://example.org/" + "nowhere-to-break" * 12


def asked(user: User, **run: Any) -> AgentRun:
    """A run that somebody has asked something, in a goal of its own."""
    goal = GoalFactory.create(user=user)
    made: AgentRun = AgentRunFactory.create(thread=goal.thread, started_at=timezone.now(), **run)
    if made.is_live:
        Thread.objects.filter(pk=goal.thread.pk).update(live_run=made.pk)
    ThreadMessageFactory.create(thread=goal.thread, run=made, content="Please write down what I need.")
    return made


def address(run: AgentRun) -> str:
    return f"/goals/{run.thread.goals_goal.pk}/"


def with_call(run: AgentRun, action: Any) -> str:
    about = {"action": str(action.pk)}
    ThreadMessageFactory.create(
        thread=run.thread, run=run, source=Source.AGENT, message_type="tool", content="", metadata=about
    )
    return address(run)


def with_error(run: AgentRun, **metadata: Any) -> str:
    about = {"reason": "error", "retryable": True, **metadata}
    ThreadMessageFactory.create(thread=run.thread, run=run, source=Source.ERROR, content=LONG, metadata=about)
    return address(run)


@pytest.fixture
def approval(user: User) -> str:
    run = asked(user, status=RunStatus.WAITING_APPROVAL)
    body = {"title": "Mail", "body": f"Good morning,\n\n{LONG}"}
    asks = ApprovalFactory.create(
        action__run=run, action__status="intent", action__reversal="irreversible", action__arguments=body
    )
    return with_call(run, asks.action)


@pytest.fixture
def unknown(user: User) -> str:
    run = asked(user)
    return with_call(run, AgentActionFactory.create(run=run, status="unknown", effect="verifiable", error=LONG))


@pytest.fixture
def countdown(user: User) -> str:
    due = timezone.now() + timedelta(minutes=5)
    run = asked(user, status=RunStatus.RETRY_WAIT, due_at=due)
    return with_error(run, attempt=1, of=2, next_at=due.isoformat())


@pytest.fixture
def refused(user: User) -> str:
    return with_error(asked(user, status=RunStatus.FAILED, reason=HISTORY_REFUSED))


@pytest.fixture
def pause(user: User) -> str:
    run = asked(user, status=RunStatus.RUNNING)
    ModelCallFactory.create(run=run, step=0, status="failed")
    ModelCallFactory.create(run=run, step=0, status="started")
    return address(run)


@pytest.fixture
def sessions(user: User) -> list[str]:
    thread = asked(user).thread
    HistoryEntryFactory(thread=thread, seq=9)
    call = {"type": "tool_use", "id": "c1", "name": "create_note", "arguments": {"title": LONG}, "problem": None}
    said = [{"type": "text", "text": f"The **blue** ones. {LONG}"}, call]
    entries = [{"seq": 1, "role": "assistant", "blocks": said}]
    session = AgentHistoryFactory.create(thread=thread, summary=LONG, entries=entries)
    empty = asked(user).thread
    return [f"/threads/{thread.pk}/sessions/", f"/sessions/{session.pk}/", f"/threads/{empty.pk}/sessions/"]


@pytest.fixture
def helpers(user: User) -> list[str]:
    run = asked(user)
    soon = {"paused_at": timezone.now(), "resume_at": timezone.now() + timedelta(minutes=5), "result": LONG}
    for status, more in ((TaskStatus.ACTIVE, {}), (TaskStatus.PAUSED, soon), (TaskStatus.COMPLETED, {})):
        task = AgentTaskFactory.create(
            parent=run.thread, user=user, sent_by=run, status=status, title=LONG[:180], **more
        )
        AgentRunFactory.create(thread=task.thread, step=2)
    return ["/jobs/", address(run)]


@pytest.fixture
def pages(
    approval: str, unknown: str, countdown: str, refused: str, pause: str, sessions: list[str], helpers: list[str]
) -> list[str]:
    return [approval, unknown, countdown, refused, pause, *sessions, *helpers]


@pytest.fixture
def context(browser: Browser, live_server: LiveServer, user: User) -> Iterator[BrowserContext]:
    opened = signed_in(browser, live_server.url, user)
    yield opened
    opened.close()


def test_every_card_is_accessible_and_fits(context: BrowserContext, pages: list[str]) -> None:
    page = context.new_page()
    for path in pages:
        answer = page.goto(path)
        assert answer
        assert answer.ok, path
        for rejection in page.get_by_text("Reject…").all():
            rejection.click()
        assert_usable(page)


def test_the_health_page_fits_a_phone(context: BrowserContext, user: User) -> None:
    user.is_staff = user.is_superuser = True
    user.save()
    HealthReportFactory(name="stuck_runs", found=2, fixed=1, examples=[LONG])
    page = context.new_page()
    page.set_viewport_size(PHONE)
    page.goto("/admin/agents/healthreport/")
    page.get_by_role("cell", name="Runs that nobody will take up").first.wait_for()
    assert page.locator(".wm-sums").evaluate("(part) => part.getBoundingClientRect().right <= innerWidth")
