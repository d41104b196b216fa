"""Runs, worked on in this process through the job that RQ would call, against the scripted model server."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from pytest_django import Settings

from agents import services
from agents.attaching import Upload
from agents.engine import jobs
from agents.services import Accepted
from goals.models import Goal
from memory.models import AgentRun
from tests.factories import GoalFactory, think_with
from tests.llm_server import LLMServer
from tests.world import TOOLS, WORLD, World
from tools.registry import all_tools


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer, rung: list[UUID]) -> Goal:
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url, "key-of-the-test")
    return goal


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[World]:
    """The tools of `tests.world` are offered; returns what they have done."""
    monkeypatch.setenv(WORLD, str(tmp_path / "world"))
    settings.AGENT_TOOLS = [*settings.AGENT_TOOLS, *TOOLS]
    all_tools.cache_clear()
    yield World(str(tmp_path / "world"))
    all_tools.cache_clear()


@pytest.fixture
def say(goal: Goal, rung: list[UUID]) -> Callable[..., AgentRun]:
    """Send a message, with files, and work on everything that was rung for, until all is quiet."""

    def say(text: str, *files: Upload) -> AgentRun:
        accepted: Accepted = services.send_message(goal.thread, text, files=files)
        while rung:
            jobs.run(str(rung.pop(0)))
        assert accepted.run_id
        return AgentRun.objects.get(pk=accepted.run_id)

    return say
