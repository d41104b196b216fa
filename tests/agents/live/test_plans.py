"""The plan of an agent at work, as its user sees it beside the conversation: each step as it is made and closed
(mission A7)."""

import asyncio
import threading
from pathlib import Path
from uuid import UUID

import pytest
from pytest_django import Settings

from agents import services
from goals.models import Goal
from tests.agents.engine.test_orchestrator import work_in_thread
from tests.agents.engine.test_plans import LIST, PLAN, closes
from tests.agents.live.test_consumers import Page, db
from tests.factories import GoalFactory, think_with
from tests.llm_script import Reply
from tests.llm_server import LLMServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed_hub")]


@pytest.fixture
def goal(llm: LLMServer) -> Goal:
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    return goal


async def test_the_tree_grows_and_is_closed_while_one_looks_on(
    goal: Goal, llm: LLMServer, rung: list[UUID], settings: Settings, tmp_path: Path
) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    planned, closed = threading.Event(), threading.Event()
    llm.script(
        [
            Reply(calls=[PLAN]),
            Reply("I write it down.", calls=[LIST, closes(("file", "list.md"))], hold=planned),
            Reply("That is one.", hold=closed),
        ]
    )
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await page.hello("")
    await page.frame()
    await db(services.send_message, goal.thread, "Go on")
    work = asyncio.create_task(asyncio.to_thread(work_in_thread, rung.pop()))
    try:
        seen = await page.frames_until("2.1</span> Ask", 30)
        assert "0 of 3" in seen
        assert "list.md" not in seen, "the step is at work, and nothing of it is done"
        planned.set()
        assert "1 of 3" in await page.frames_until("evidence: list.md", 30)
        assert not work.done()
    finally:
        planned.set()
        closed.set()
        await work
    await page.close()
