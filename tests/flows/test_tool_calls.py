"""Tool calls in worker processes that are killed: what acted on the world did so once (HIS-01, CON-04, CON-05)."""

from pathlib import Path
from typing import Any

import pytest

from agents import decisions, services
from agents.live.stream import redis_client
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from tests.factories import GoalFactory, think_with
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker
from tests.world import WORLD, World
from tools.models import AgentAction, ApprovalState

pytestmark = pytest.mark.faults


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer) -> Goal:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    return goal


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "world"))


def with_tools(world: World) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": "tests.world_settings", WORLD: str(world.path)}


def run_of(goal: Goal) -> AgentRun:
    return AgentRun.objects.get(thread=goal.thread)


def test_his_01_and_con_04_c_a_killed_worker_neither_loses_nor_repeats(
    goal: Goal, llm: LLMServer, world: World
) -> None:
    """Of one reply: sent and recorded, saved with a key, booked, and last the one that kills its worker."""
    calls: list[tuple[str, dict[str, Any] | str]] = [
        ("post", {"text": "first"}),
        ("upsert", {"text": "row"}),
        ("book", {"text": "table"}),
        ("slow_down", {"seconds": 0}),
        ("post", {"text": "second", "then": "die"}),
    ]
    llm.script([Reply(calls=calls), Reply(text="Nearly all of it.")])
    with worker(**with_tools(world)) as first:
        services.send_message(goal.thread, "Go")
        assert first.is_dead(30)
    with worker(**with_tools(world)):
        wait_until(lambda: run_of(goal).status == RunStatus.SUCCEEDED, 40)
    assert (run_of(goal).recoveries, run_of(goal).step) == (1, 2)
    assert world.texts("post") == ["first", "second"]
    assert world.texts("book") == ["table"]
    assert len(set(world.calls("upsert"))) == 1
    statuses = AgentAction.objects.order_by("position").values_list("status", flat=True)
    assert list(statuses) == ["done", "done", "done", "done", "unknown"]
    assert len(llm.requests) == 2
    assert not llm.violations


def test_con_05_f_an_approval_given_while_no_worker_lives_is_carried_out_once(
    goal: Goal, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello"})]), Reply(text="Sent.")])
    with worker(**with_tools(world)):
        services.send_message(goal.thread, "Go")
        wait_until(lambda: run_of(goal).status == RunStatus.WAITING_APPROVAL, 30)
    action = AgentAction.objects.get()
    decisions.decide(action, action.user, ApprovalState.APPROVED, action.approval.digest)
    with worker(**with_tools(world)), worker(**with_tools(world)):
        wait_until(lambda: run_of(goal).status == RunStatus.SUCCEEDED, 40)
    assert world.texts("send_email") == ["hello"]
    assert not llm.violations
