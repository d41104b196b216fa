"""A worker that is told to stop hands over what it cannot finish: as it stands, by nobody's wish (invariant I18)."""

import threading
from collections.abc import Callable
from uuid import UUID

import pytest
from pytest_django import Settings

from agents import services
from agents.engine import jobs
from agents.engine.leases import leases
from agents.models import ModelCall
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from tests.agents.engine.test_calls import answers, post, statuses
from tests.agents.engine.test_orchestrator import assert_quiet, cells, run_of, wait_until, work_in_thread
from tests.llm_script import Hang, Reply
from tests.llm_server import LLMServer
from tests.world import World


@pytest.fixture
def cut_off(goal: Goal, rung: list[UUID], settings: Settings) -> Callable[[Callable[[], bool]], AgentRun]:
    """Have a run cut off as soon as something is so, as at the end of a worker's time."""
    settings.WAYMARK_STOP_GRACE_SECONDS = 0.1

    def cut_off(is_so: Callable[[], bool]) -> AgentRun:
        accepted = services.send_message(goal.thread, "Go")
        worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
        worker.start()
        wait_until(is_so)
        leases.cut_off()
        worker.join(20)
        assert not leases.held
        return run_of(accepted)

    return cut_off


type CutOff = Callable[[Callable[[], bool]], AgentRun]


def test_a_model_call_that_takes_too_long_is_handed_over_at_once_and_no_worker_has_died(
    goal: Goal, rung: list[UUID], llm: LLMServer, cut_off: CutOff
) -> None:
    llm.script([Hang(30), Reply(text="Here I am.")])
    run = cut_off(lambda: len(llm.requests) == 1)
    assert (run.status, run.lease_token, run.recoveries) == (RunStatus.QUEUED, None, 0)
    assert rung == [run.pk], "whoever is there takes it up"
    jobs.run(str(rung.pop()))
    run.refresh_from_db()
    assert (run.status, run.recoveries, run.cost_known) == (RunStatus.SUCCEEDED, 0, False)
    assert [call.status for call in ModelCall.objects.order_by("created_at")] == ["failed", "done"]
    assert cells(goal)[-1][2] == "Here I am."
    assert_quiet(goal, llm)


def test_calls_that_are_cut_off_are_known_as_far_as_may_be(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World, cut_off: CutOff, settings: Settings
) -> None:
    """What had not begun has not happened, what can be looked up is, what may run again does."""
    settings.WAYMARK_PARALLEL_TOOLS = 1
    book, upsert = ("book", {"text": "a table", "then": "hang 3"}), ("upsert", {"text": "a row"})
    llm.script([Reply(calls=[book, post("hello"), upsert]), Reply(text="So it is.")])
    run = cut_off(lambda: world.texts("book") == ["a table"])
    assert (run.status, run.step) == (RunStatus.QUEUED, 0)
    assert statuses() == ["started", "cancelled", "started"]
    jobs.run(str(rung.pop()))
    run.refresh_from_db()
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)
    assert statuses() == ["done", "cancelled", "done"]
    assert [event[0] for event in world.events] == ["book", "upsert"]
    assert answers(llm)[1] == "Error: Not executed: Waymark was stopped before it began. It may be run again."
    assert_quiet(goal, llm)


def test_what_nobody_can_look_up_says_that_it_was_cut_off_by_nobodys_wish(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World, cut_off: CutOff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.world.Post.timeout_seconds", 30.0)
    pause = ("slow", {"seconds": 3, "name": "nap"})
    llm.script([Reply(calls=[post("hello", "hang 3"), pause]), Reply(text="I cannot tell.")])
    cut_off(lambda: {"post", "begin"} <= {event[0] for event in world.events})
    assert statuses() == ["unknown", "started"]
    jobs.run(str(rung.pop()))
    assert statuses() == ["unknown", "done"]
    assert "Waymark was stopped in the middle of it, by nobody's wish" in answers(llm)[0]
    assert not any("by the user" in answer.partition("Do not")[0] for answer in answers(llm))
    assert_quiet(goal, llm)


def test_a_thread_that_does_not_end_costs_no_lease(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World, settings: Settings
) -> None:
    settings.WAYMARK_STOP_GRACE_SECONDS = 3
    llm.script([Reply(calls=[("slow", {"seconds": 2, "name": "nap"})]), Reply(text="Rested.")])
    accepted = services.send_message(goal.thread, "Go")
    worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
    worker.start()
    wait_until(lambda: world.texts("begin") == ["nap"])
    leases.cut_off()
    assert leases.give_up() == [run_of(accepted).pk]
    assert run_of(accepted).status == RunStatus.QUEUED
    worker.join(20)
    jobs.run(str(run_of(accepted).pk))
    run = run_of(accepted)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)
    assert_quiet(goal, llm)
