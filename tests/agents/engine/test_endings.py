"""Small things that happen at the wrong moment: a database that goes away just then, an answer that comes twice."""

from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest
from django.db import OperationalError

from agents import decisions, services
from agents.engine import jobs, journal, sweeper
from agents.engine.leases import leases
from goals.models import Goal
from memory.models import AgentRun, Note, RunStatus
from tests.agents.engine.test_approvals import unknown_call
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet
from tests.agents.engine.test_recovery import expire_leases
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tests.world import World
from tools.builtin.notes import CreateNote
from tools.models import AgentAction, Resolution
from tools.probing import look_up

type Say = Callable[[str], AgentRun]

BROKEN = Reply(calls=[("create_note", '{"title":"Shoes","body":"fi')], finish="length")


@pytest.fixture
def draining() -> Iterator[None]:
    yield
    leases.draining.clear()


def drain(answer: Reply) -> Callable[[Request], Reply]:
    """The worker is told to stop while its model answers."""

    def answered(request: Request) -> Reply:
        leases.draining.set()
        return answer

    return answered


@pytest.mark.usefixtures("draining")
def test_a_database_that_is_away_when_a_run_is_handed_over_costs_a_lease_and_no_more(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object) -> None:
        raise psycopg.OperationalError("of the test")

    llm.script([drain(Reply(calls=[NOTE])), Reply(text="Noted.")])
    services.send_message(goal.thread, "Note: new shoes")
    run_id = rung.pop()
    with monkeypatch.context() as patched:
        patched.setattr(journal, "hand_over", away)
        jobs.run(str(run_id))
    leases.draining.clear()
    expire_leases()
    jobs.run(str(run_id))
    assert AgentRun.objects.get().status == RunStatus.SUCCEEDED
    assert Note.objects.count() == 1
    assert_quiet(goal, llm)


@pytest.mark.parametrize("error", [OperationalError, psycopg.OperationalError])
def test_a_database_that_is_away_in_a_local_tool_is_no_answer_for_the_model(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    real, away = CreateNote.run, iter([True])

    def run(self: CreateNote, *args: object) -> object:
        if next(away, False):
            raise error("of the test")
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(CreateNote, "run", run)
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted.")])
    assert say("Note: new shoes").status == RunStatus.SUCCEEDED
    assert AgentAction.objects.get().status == "done"
    assert_quiet(goal, llm)


@pytest.mark.usefixtures("draining")
def test_prv_04_malformed_replies_are_counted_across_workers(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([BROKEN, drain(BROKEN), BROKEN, Reply(text="never asked")])
    services.send_message(goal.thread, "Note: new shoes")
    run_id = rung.pop()
    jobs.run(str(run_id))
    assert AgentRun.objects.get().status == RunStatus.QUEUED
    leases.draining.clear()
    jobs.run(str(run_id))
    run = AgentRun.objects.get()
    assert (run.status, run.reason) == (RunStatus.FAILED, "broken_calls")
    assert len(llm.requests) == 3


def test_what_was_settled_by_hand_while_it_was_looked_up_stays_so(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = unknown_call(goal, say, llm, "book", "table")

    def meanwhile(*args: object) -> object:
        decisions.resolve(action, action.user, Resolution.RUN_AGAIN)
        return look_up(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("agents.decisions.look_up", meanwhile)
    jobs.check(str(action.pk), action.user_id)
    action.refresh_from_db()
    assert (action.status, action.resolution) == ("unknown", Resolution.RUN_AGAIN)


def test_lost_runs_are_rung_for_even_where_nothing_can_expire(
    goal: Goal, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> int:
        raise ValueError("of the test")

    services.send_message(goal.thread, "Hi")
    AgentRun.objects.update(created_at="2026-01-01T00:00Z")
    rung.clear()
    monkeypatch.setattr(decisions, "expire_due", broken)
    with pytest.raises(ValueError, match="of the test"):
        sweeper.sweep()
    assert rung == [AgentRun.objects.get().pk]
