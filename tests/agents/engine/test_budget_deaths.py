"""What a budget counts of calls whose worker has died: the worst, of exactly those that were open."""

from decimal import Decimal
from uuid import UUID

import pytest

from agents import services
from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.purse import Purse
from agents.budgets.services import set_budget
from agents.connecting import Given, connect_model
from agents.connections import choice_for
from agents.engine import jobs, leases, orchestrator, payment, sweeper
from agents.engine.health import runs
from agents.engine.steps import Steps
from agents.models import ModelCall
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from memory.pool import execute
from tests.agents.engine.test_orchestrator import NOTE
from tests.agents.engine.test_recovery import Killed
from tests.llm_script import Reply
from tests.llm_server import LLMServer

MODEL = "gpt-5-mini"  # 0.25 and 2 dollars for a million tokens
UNHEARD = Reply("Nobody hears of it.", usage=(1000, 10))


@pytest.fixture(autouse=True)
def priced(goal: Goal, llm: LLMServer) -> None:
    connect_model(goal.user, "openai", Given(MODEL, llm.url, "key-of-the-test"))


@pytest.fixture
def run_id(goal: Goal, rung: list[UUID]) -> UUID:
    services.send_message(goal.thread, "Hi")
    return rung.pop()


def die(run_id: UUID, where: type = Purse, method: str = "replied") -> None:
    """Its worker dies there; its lease runs out."""

    def killed(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(where, method, killed)
        with pytest.raises(Killed):
            jobs.run(str(run_id))
    execute("UPDATE memory_agentrun SET lease_until = clock_timestamp() - interval '1 second'", {})


def budget_now() -> Budget:
    return Budget.objects.get()


def in_the_end(run_id: UUID) -> tuple[AgentRun, Budget]:
    """Once everything is swept: nothing is held, and all is booked that was charged."""
    sweeper.sweep()
    run, budget = AgentRun.objects.get(pk=run_id), budget_now()
    assert budget.reserved == budget.reserved_tokens == run.held == 0
    assert not run.metered
    assert not Reservation.objects.exists()
    assert run.charged == run.booked == sum(call.charged or 0 for call in ModelCall.objects.filter(run=run))
    return run, budget


def test_whoever_is_given_up_after_many_deaths_has_paid_for_each(goal: Goal, run_id: UUID, llm: LLMServer) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([UNHEARD for _ in range(6)])
    worst = []
    for _ in range(6):
        before = AgentRun.objects.get(pk=run_id).charged
        die(run_id)
        now = AgentRun.objects.get(pk=run_id)
        worst.append(now.held - now.charged)
        assert now.charged == sum(worst[:-1]) >= before
    jobs.run(str(run_id))
    run, budget = in_the_end(run_id)
    assert (run.status, run.reason, len(llm.requests)) == (RunStatus.FAILED, "crashed", 6)
    assert budget.spent == run.charged == sum(worst)


def test_a_run_that_cannot_be_assembled_after_a_death_has_paid(
    goal: Goal, run_id: UUID, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([UNHEARD])
    die(run_id)
    held = budget_now().reserved

    def broken(_: UUID) -> None:
        raise RuntimeError

    monkeypatch.setattr(orchestrator, "summon", broken)
    jobs.run(str(run_id))
    assert budget_now().reserved == 0
    run, budget = in_the_end(run_id)
    assert run.status == RunStatus.FAILED
    assert budget.spent == held > 0


def test_a_run_that_the_monitor_ends_has_paid(goal: Goal, run_id: UUID, llm: LLMServer) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([UNHEARD])
    die(run_id)
    held = budget_now().reserved
    execute("UPDATE memory_agentrun SET created_at = now() - interval '9 hours', started_at = created_at", {})
    execute("UPDATE memory_agentrun SET started_at = created_at", {})
    execute("UPDATE agents_modelcall SET created_at = now() - interval '9 hours'", {})
    assert runs.abandon(run_id, 3600)
    run, budget = in_the_end(run_id)
    assert (run.reason, run.cost_known) == ("stale", False)
    assert budget.spent == held > 0


def test_a_worker_that_dies_in_a_tool_has_no_call_open(goal: Goal, run_id: UUID, llm: LLMServer) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply(calls=[NOTE], usage=(1000, 100)), Reply("Done.", usage=(2000, 50))])
    die(run_id, Steps, "act")
    jobs.run(str(run_id))
    run, budget = in_the_end(run_id)
    assert (run.status, run.recoveries, run.cost_known) == (RunStatus.SUCCEEDED, 1, True)
    assert budget.spent == run.cost == Decimal("0.00105")


def test_a_run_that_was_recovered_once_and_is_handed_over_pays_once(
    goal: Goal, run_id: UUID, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the next worker is there before the first has booked."""
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([UNHEARD, Reply(calls=[NOTE], usage=(1000, 100)), Reply("Done.", usage=(2000, 50))])
    die(run_id)
    held = budget_now().reserved

    with monkeypatch.context() as leaving:
        leaving.setattr(payment, "let_go", lambda _: None)
        acted = Steps.acted

        def and_leave(steps: Steps, last: bool) -> None:
            acted(steps, last)
            leases.leases.draining.set()

        leaving.setattr(Steps, "acted", and_leave)
        jobs.run(str(run_id))
        leases.leases.draining.clear()
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.QUEUED
    assert budget_now().reserved > 0
    jobs.run(str(run_id))
    run, budget = in_the_end(run_id)
    assert run.status == RunStatus.SUCCEEDED
    assert budget.spent == held + run.cost


def test_deaths_count_in_a_budget_of_each_run(goal: Goal, run_id: UUID, llm: LLMServer) -> None:
    set_budget(goal.user, Window.RUN, Decimal("0.018"), None)
    llm.script([UNHEARD for _ in range(5)])
    die(run_id)
    die(run_id)
    jobs.run(str(run_id))
    run, budget = in_the_end(run_id)
    assert (run.status, len(llm.requests)) == (RunStatus.WAITING_BUDGET, 2)
    outputs = sum(int(request.body["max_completion_tokens"]) for request in llm.requests)
    assert outputs * Decimal("0.000002") < run.charged <= Decimal("0.018")
    assert budget.spent == 0, "nothing is counted beyond the run"


def test_a_summary_that_nobody_finishes_is_swept_up(goal: Goal, llm: LLMServer) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    call = ModelCall.objects.create(thread=goal.thread, provider="openai", model=MODEL)
    payment.reserve_beside(call, choice_for(goal.thread), "words")
    held = budget_now().reserved
    execute("UPDATE agents_modelcall SET created_at = created_at - interval '1 hour'", {})
    sweeper.sweep()
    call.refresh_from_db()
    assert (call.status, call.charged) == ("failed", held)
    assert (budget_now().reserved, budget_now().spent) == (Decimal(0), held)
    call.cost = Decimal("0.001")
    payment.settle_beside(call)
    assert budget_now().spent == held, "once"
