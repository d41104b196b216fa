"""What agents have cost stays on record, and in budgets, when they are deleted (mission C4)."""

from collections.abc import Callable
from datetime import UTC, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from agents import services, stopping
from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.purse import Purse
from agents.budgets.services import set_budget
from agents.connecting import Given, connect_model
from agents.connections import choice_for
from agents.costs import By, Period, spent, total
from agents.engine import jobs, payment, summaries, sweeper
from agents.engine.health import monitor
from agents.models import AgentTask, CallStatus, ModelCall
from agents.providers.base import NOTHING_USED
from goals.context import build
from goals.models import Goal
from goals.services import delete_goal
from memory.ids import new_id
from memory.models import AgentRun, RunStatus, Thread
from tests.agents.engine.test_recovery import Killed
from tests.llm_script import Reply
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

MODEL = "gpt-5-mini"  # 0.25 and 2 dollars for a million tokens
SHOES = ("create_task", {"title": "Shoes", "instructions": "Find some"})


@pytest.fixture(autouse=True)
def priced(goal: Goal, llm: LLMServer) -> None:
    connect_model(goal.user, "openai", Given(MODEL, llm.url, "key-of-the-test"))


def cost(goal: Goal, by: By = By.MODEL) -> Decimal:
    period = Period(timezone.now() - timedelta(days=30), timezone.now() + timedelta(days=1), UTC)
    return total(spent(by, period, goal.user)).cost


@pytest.fixture
def with_a_task(goal: Goal, say: Say, llm: LLMServer) -> Decimal:
    """A turn with a task; returns what both have cost."""
    llm.script(
        [
            Reply(calls=[SHOES], usage=(1000, 10)),
            Reply("Sent off.", usage=(1000, 10)),
            Reply("Here they are.", usage=(100_000, 10)),
            Reply("Thank you.", usage=(1000, 10)),
        ]
    )
    say("Find shoes")
    assert AgentRun.objects.filter(status=RunStatus.SUCCEEDED).count() == 3
    return sum((run.cost for run in AgentRun.objects.all()), Decimal(0))


def test_a_task_that_is_over_for_long_leaves_its_costs_to_its_goal(goal: Goal, with_a_task: Decimal) -> None:
    old = timezone.now() - timedelta(days=16)
    AgentRun.objects.update(created_at=old, started_at=old, finished_at=old)
    ModelCall.objects.update(created_at=old)
    AgentTask.objects.update(created_at=old)
    monitor.examine(fix=True)
    assert not AgentTask.objects.exists()
    assert cost(goal) == cost(goal, By.AGENT) == with_a_task
    assert {(call.run or call).thread_id for call in ModelCall.objects.select_related("run")} == {goal.thread_id}
    assert set_budget(goal.user, Window.TOTAL, Decimal(1), None).spent == with_a_task
    assert set_budget(goal.user, Window.TOTAL, Decimal(1), None, goal.thread).spent == with_a_task


def test_a_goal_that_is_deleted_leaves_its_costs_to_its_user(goal: Goal, with_a_task: Decimal, client: Client) -> None:
    before = build(goal.user).spent
    delete_goal(goal)
    assert not Thread.objects.filter(pk=goal.thread_id).exists()
    assert build(goal.user).spent == before == with_a_task
    for by in By:
        assert cost(goal, by) == with_a_task
    assert set_budget(goal.user, Window.TOTAL, Decimal(1), None).spent == with_a_task
    client.force_login(goal.user)
    assert "Deleted goals" in client.get("/settings/costs/?by=goal").content.decode()


def test_a_goal_that_is_deleted_before_its_run_is_booked_has_paid(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Hi.", usage=(300_000, 100))])
    real = payment.let_go

    def late(run_id: UUID) -> None:
        delete_goal(goal)
        real(run_id)

    monkeypatch.setattr(payment, "let_go", late)
    services.send_message(goal.thread, "Hi")
    jobs.run(str(rung.pop()))
    budget.refresh_from_db()
    assert (budget.spent, budget.reserved) == (Decimal("0.0752"), Decimal(0))
    assert not Reservation.objects.exists()


def test_a_goal_that_is_deleted_under_its_worker_has_paid_for_what_was_open(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "PATIENCE_SECONDS", 0.0)
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Nobody hears of it.", usage=(1000, 10))])
    services.send_message(goal.thread, "Hi")

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(Purse, "replied", die)
        with pytest.raises(Killed):
            jobs.run(str(rung.pop()))
    held = Budget.objects.get(pk=budget.pk).reserved
    delete_goal(goal)
    budget.refresh_from_db()
    assert (budget.spent, budget.reserved) == (held, Decimal(0))
    (call,) = ModelCall.objects.all()
    assert (call.user_id, call.status, call.charged) == (goal.user.pk, "failed", held)
    assert set_budget(goal.user, Window.TOTAL, Decimal(1), None).spent == held
    sweeper.sweep()
    budget.refresh_from_db()
    assert budget.spent == held


def test_a_goal_that_is_deleted_during_its_summary_has_paid(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    call = ModelCall.objects.create(thread=goal.thread, provider="openai", model=MODEL)
    choice = choice_for(goal.thread)
    payment.reserve_beside(call, choice, "words")
    held = Budget.objects.get(pk=budget.pk).reserved
    delete_goal(goal)
    summaries._finished(call, choice, CallStatus.DONE, NOTHING_USED, 0.0)
    budget.refresh_from_db()
    assert (budget.spent, budget.reserved) == (held, Decimal(0))


def test_tokens_of_a_run_that_is_gone_are_free_again(goal: Goal) -> None:
    budget = set_budget(goal.user, Window.MONTH, None, 1_000_000)
    run = AgentRun.objects.create(thread=goal.thread, status=RunStatus.RUNNING, lease_token=new_id(), metered=True)
    Reservation.objects.create(budget=budget, run=run, tokens=500_000)
    Budget.objects.update(reserved_tokens=500_000)
    run.delete()
    monitor.examine(fix=True)
    budget.refresh_from_db()
    assert budget.reserved_tokens == 0
