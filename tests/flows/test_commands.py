"""Commands of agents in real worker processes: stopped by their user, and left behind by a worker that is killed
(invariant I15, case FIL-03)."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from agents import services
from agents.live.stream import redis_client
from agents.stopping import stop_run
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from tests.factories import GoalFactory, think_with
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker
from tools.models import AgentAction
from tools.sandbox import box

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(bool(box.missing_program()), reason=f"{box.missing_program()} is not there"),
]

MARK = str(20_000_000 + os.getpid())


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer) -> Goal:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    llm.script([Reply(calls=[("run_cmd", {"command": f"sleep {MARK}"})]), Reply(text="Done.")])
    return goal


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"WAYMARK_COMMANDS_ALLOWED": "sleep", "WAYMARK_COMMAND_SECONDS": "300", "WAYMARK_WORKSPACES": str(tmp_path)}


def sleepers() -> list[list[str]]:
    told = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    return [words for words in told if MARK in words]


def run_of(goal: Goal) -> AgentRun:
    return AgentRun.objects.get(thread=goal.thread)


def test_i15_a_stop_ends_a_command_and_its_outcome_is_known(goal: Goal, environment: dict[str, str]) -> None:
    with worker(**environment):
        services.send_message(goal.thread, "Sleep")
        wait_until(lambda: sleepers() != [], 60)
        stop_run(run_of(goal))
        wait_until(lambda: run_of(goal).status == RunStatus.CANCELLED, 60)
        wait_until(lambda: sleepers() == [], 30)
    action = AgentAction.objects.get()
    assert action.status == "done"
    assert action.output.startswith("It was stopped by the user after ")


def test_a_command_that_the_end_of_its_worker_cuts_off_was_stopped_by_nobody(
    goal: Goal, environment: dict[str, str], llm: LLMServer
) -> None:
    """It is recorded what it did, its run goes on in the next worker, and no worker has died (invariant I18)."""
    with worker(**environment, WAYMARK_DRAIN_SECONDS="0.2") as first:
        services.send_message(goal.thread, "Sleep")
        wait_until(lambda: sleepers() != [], 60)
        first.send(signal.SIGTERM)
        assert first.is_dead(30)
    assert (run_of(goal).status, run_of(goal).recoveries) == (RunStatus.QUEUED, 0)
    action = AgentAction.objects.get()
    assert action.status == "done"
    assert action.output.startswith("It was cut off after ")
    assert "Waymark was stopped in the middle of it, by nobody's wish; it may be run again." in action.output
    with worker(**environment):
        wait_until(lambda: run_of(goal).status == RunStatus.SUCCEEDED, 60)
    assert run_of(goal).recoveries == 0


def test_fil_03_a_killed_worker_leaves_no_command_behind_and_it_is_not_run_again(
    goal: Goal, environment: dict[str, str]
) -> None:
    with worker(**environment) as first:
        services.send_message(goal.thread, "Sleep")
        wait_until(lambda: sleepers() != [], 60)
        first.kill()
        wait_until(lambda: sleepers() == [], 30)
    with worker(**environment):
        wait_until(lambda: run_of(goal).status == RunStatus.SUCCEEDED, 60)
        assert sleepers() == []
    assert AgentAction.objects.get().status == "unknown"
