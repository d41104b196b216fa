"""I17: what a run spends is reserved before each call of its model, so that no budget is overspent (mission C5)."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents import services
from agents.budgets import ledger
from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.purse import Purse
from agents.budgets.services import allow_more, remove_budget, set_budget
from agents.connecting import Given, choose_for_uses, connect_model
from agents.connections import choice_for
from agents.engine import archiving, jobs, payment, sweeper
from agents.engine.health import monitor
from agents.models import ModelCall
from agents.providers.capabilities import Capabilities
from agents.services import assistant_of
from goals.models import Goal
from memory.ids import new_id
from memory.models import AgentHistory, AgentRun, ArchiveReason, RunStatus, ThreadMessage
from memory.pool import execute
from tests.agents.engine.test_archiving import SUMMARY, summaries, summary_requests, talk
from tests.agents.engine.test_orchestrator import NOTE
from tests.agents.engine.test_recovery import Killed
from tests.llm_script import Reply, Status
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

PRICED = "gpt-5-mini"  # 0.25 and 2 dollars for a million tokens
DEARER = "gpt-5.1"  # 1.25 and 10


@pytest.fixture(autouse=True)
def priced(goal: Goal, llm: LLMServer) -> None:
    connect_model(goal.user, "openai", Given(PRICED, llm.url, "key-of-the-test"))


def only(budget: Budget) -> Budget:
    """The budget as it is now; nothing is held in it."""
    found = Budget.objects.get(pk=budget.pk)
    assert (found.reserved, found.reserved_tokens) == (Decimal(0), 0)
    assert not Reservation.objects.exists()
    return found


def notices(goal: Goal) -> list[str]:
    return list(ThreadMessage.objects.filter(thread=goal.thread, source="error").values_list("content", flat=True))


def go_on(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def test_what_a_turn_costs_is_booked_and_nothing_stays_reserved(goal: Goal, say: Say, llm: LLMServer) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply(calls=[NOTE], usage=(1000, 100)), Reply("Done.", usage=(2000, 50))])
    run = say("Make a note")
    assert run.status == RunStatus.SUCCEEDED
    assert run.cost == Decimal("0.00105")
    found = only(budget)
    assert (found.spent, found.spent_tokens) == (run.cost, 3150)
    assert (run.charged, run.booked) == (run.cost, run.cost)


def test_the_worst_of_a_call_is_reserved_before_it_and_limits_its_output(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_MOST_OUTPUT_TOKENS = 16_000
    budget = set_budget(goal.user, Window.MONTH, Decimal("0.02"), None)
    seen: list[Decimal] = []

    def look(request: object) -> Reply:
        seen.append(execute("SELECT reserved FROM agents_budget", {})[0][0])
        return Reply("Hi.", usage=(1000, 10))

    llm.script([look])
    say("Hi")
    (asked,) = llm.requests
    most = asked.body["max_completion_tokens"]
    assert 1_000 <= most < 10_000, "not more than the budget pays for"
    assert most * Decimal("0.000002") < seen[0] <= Decimal("0.02")
    assert only(budget).spent == Decimal("0.00027")


def test_a_reply_is_limited_to_what_the_model_can_say(goal: Goal, say: Say, llm: LLMServer) -> None:
    given = Given(PRICED, llm.url, "key-of-the-test", corrections=Capabilities(output_limit=2_000))
    connect_model(goal.user, "openai", given)
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Hi.")])
    say("Hi")
    assert llm.requests[0].body["max_completion_tokens"] == 2_000


def test_whoever_stands_in_is_paid_for_at_its_own_price(goal: Goal, say: Say, llm: LLMServer) -> None:
    spare = connect_model(goal.user, "openai", Given(DEARER, llm.url, "key-of-the-test"), default=False)
    choose_for_uses(assistant_of(goal.user), summariser=None, stand_in=spare)
    budget = set_budget(goal.user, Window.MONTH, Decimal("0.06"), None)
    seen: list[Decimal] = []

    def look(request: object) -> Reply:
        seen.append(execute("SELECT reserved FROM agents_budget", {})[0][0])
        return Reply("Here I am.", usage=(1000, 100))

    llm.script([Status(401, body={"error": {"message": "key disabled"}})], match=PRICED)
    llm.script([look], match=DEARER)
    run = say("Hi")
    assert run.status == RunStatus.SUCCEEDED
    most = llm.requests[-1].body["max_completion_tokens"]
    assert most * Decimal("0.00001") < seen[0] <= Decimal("0.06"), "its worst is held, and there is room for that"
    assert most < llm.requests[0].body["max_completion_tokens"]
    assert only(budget).spent == run.cost == Decimal("0.00225")


def test_a_run_without_budgets_asks_for_no_limit(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply("Hi.")])
    say("Hi")
    assert "max_completion_tokens" not in llm.requests[0].body


@pytest.mark.parametrize(("money", "tokens"), [("0.0001", None), (None, 500)])
def test_at_the_limit_a_run_waits_and_goes_on_with_the_same_step_when_more_is_allowed(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], money: str | None, tokens: int | None
) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(money) if money else None, tokens)
    llm.script([Reply("Here I am.")])
    run = say("Hi")
    assert run.status == RunStatus.WAITING_BUDGET
    assert not llm.requests
    assert run.due_at is not None
    assert run.due_at > timezone.now()
    (said,) = notices(goal)
    assert "does not allow another call" in said
    only(budget)
    if tokens:
        set_budget(goal.user, Window.MONTH, None, 1_000_000)
    else:
        allow_more(budget)
    go_on(rung)
    run.refresh_from_db()
    assert (run.status, run.step) == (RunStatus.SUCCEEDED, 1)
    assert len(llm.requests) == 1
    only(budget)


def test_in_the_middle_of_a_turn_no_finished_step_is_repeated(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    budget = set_budget(goal.user, Window.TOTAL, Decimal("0.012"), None)
    llm.script([Reply(calls=[NOTE], usage=(20_000, 1_000)), Reply("Done.", usage=(2000, 50))])
    run = say("Make a note")
    assert (run.status, run.step, run.due_at) == (RunStatus.WAITING_BUDGET, 1, None)
    assert only(budget).spent == Decimal("0.007")
    allow_more(budget, Decimal("0.5"))
    go_on(rung)
    run.refresh_from_db()
    assert run.status == RunStatus.SUCCEEDED
    assert [call.step for call in ModelCall.objects.filter(run=run, status="done")] == [0, 1]
    assert goal.thread.notes.count() == 1
    assert only(budget).spent == run.cost


def test_a_message_wakes_a_run_that_waits_and_a_budget_that_is_gone_lets_it_go_on(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal("0.0001"), None)
    llm.script([Reply("Both at once.")])
    run = say("One")
    again = say("Two")
    assert again.pk == run.pk
    assert again.status == RunStatus.WAITING_BUDGET
    assert len(notices(goal)) == 1, "it says so once"
    remove_budget(budget)
    go_on(rung)
    run.refresh_from_db()
    assert run.status == RunStatus.SUCCEEDED


def test_a_new_window_is_found_by_the_sweeper(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]) -> None:
    budget = set_budget(goal.user, Window.DAY, Decimal("0.05"), None)
    Budget.objects.filter(pk=budget.pk).update(spent=Decimal("0.05"))
    llm.script([Reply("A new day.", usage=(1000, 10))])
    run = say("Hi")
    assert run.status == RunStatus.WAITING_BUDGET
    assert run.due_at is not None
    assert run.due_at - timezone.now() < timedelta(days=1)
    Budget.objects.filter(pk=budget.pk).update(begins=timezone.now() - timedelta(days=2))
    AgentRun.objects.filter(pk=run.pk).update(due_at=timezone.now() - timedelta(seconds=1))
    sweeper.sweep()
    go_on(rung)
    run.refresh_from_db()
    assert run.status == RunStatus.SUCCEEDED
    assert only(budget).spent == run.cost, "of the new window only"


def test_what_a_dead_worker_held_counts_as_spent(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Nobody hears of it.", usage=(1000, 10)), Reply("I am back.", usage=(1000, 10))])
    services.send_message(goal.thread, "Hi")
    run_id = rung.pop()
    with monkeypatch.context() as broken:
        broken.setattr(Purse, "replied", _die)
        with pytest.raises(Killed):
            jobs.run(str(run_id))
    held = Budget.objects.get(pk=budget.pk).reserved
    assert held > 0
    sweeper.sweep()
    assert Budget.objects.get(pk=budget.pk).reserved == held, "a worker has it, as far as anybody knows"
    execute("UPDATE memory_agentrun SET lease_until = clock_timestamp() - interval '1 second'", {})
    jobs.run(str(run_id))
    run = AgentRun.objects.get(pk=run_id)
    assert run.status == RunStatus.SUCCEEDED
    assert only(budget).spent == held + Decimal("0.00027")


def _die(*_: object) -> None:
    raise Killed


def test_a_call_that_was_refused_at_once_counts_nothing(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Status(401, body={"error": {"message": "bad key"}})])
    run = say("Hi")
    assert run.status == RunStatus.FAILED
    assert only(budget).spent == 0


def test_reservations_of_runs_that_nobody_has_are_swept_away(goal: Goal, say: Say, llm: LLMServer) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    run = AgentRun.objects.create(thread=goal.thread, status=RunStatus.SUCCEEDED, charged=Decimal("0.25"), metered=True)
    Reservation.objects.create(budget=budget, run=run, money=Decimal("0.5"))
    Budget.objects.filter(pk=budget.pk).update(reserved=Decimal("0.5"))
    sweeper.sweep()
    assert only(budget).spent == Decimal("0.25")


def test_a_budget_in_dollars_cannot_hold_for_a_model_without_a_price(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    connect_model(goal.user, "compatible", Given("nobody-knows", llm.url, "key-of-the-test"))
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Hi.")])
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "unpriced")
    assert "what a call of nobody-knows costs" in run.error
    settings.WAYMARK_BUDGET_UNPRICED = "allow"
    assert say("Hi").status == RunStatus.SUCCEEDED


def test_what_was_spent_before_there_was_a_budget_counts(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply("Hi.", usage=(1000, 100))])
    run = say("Hi")
    assert set_budget(goal.user, Window.MONTH, Decimal(1), None).spent == run.cost
    assert set_budget(goal.user, Window.TOTAL, Decimal(1), None, goal.thread).spent == run.cost


def test_most_of_a_budget_is_told_once_in_its_window(goal: Goal, say: Say, llm: LLMServer) -> None:
    set_budget(goal.user, Window.TOTAL, Decimal("0.1"), None)
    llm.script([Reply("Hi.", usage=(330_000, 100)), Reply("Hi.", usage=(10, 1))])
    say("Hi")
    assert notices(goal) == ["Your budget of $0.10 in total is 83% spent."]
    say("Hi")
    assert len(notices(goal)) == 1


def test_a_task_pays_from_its_goals_budget_and_leaves_a_share_for_the_chat(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    budget = set_budget(goal.user, Window.TOTAL, Decimal("0.1"), None, goal.thread)
    unattended = ledger.limit(budget, attended=False)
    assert unattended.money == Decimal("0.09")
    llm.script(
        [
            Reply(calls=[("create_task", {"title": "Shoes", "instructions": "Find some"})], usage=(1000, 10)),
            Reply("Sent off.", usage=(1000, 10)),
            Reply("Here they are.", usage=(1000, 10)),
            Reply("Thank you.", usage=(1000, 10)),
        ]
    )
    say("Find shoes")
    runs = list(AgentRun.objects.filter(thread__user=goal.user))
    assert {run.status for run in runs} == {RunStatus.SUCCEEDED}
    assert only(budget).spent == sum(run.cost for run in runs)


def test_each_run_has_a_limit_of_its_own(goal: Goal, say: Say, llm: LLMServer) -> None:
    set_budget(goal.user, Window.RUN, None, 30_000)
    llm.script([Reply(calls=[NOTE], usage=(29_000, 100)), Reply("Hi.", usage=(10, 10))])
    run = say("Make a note")
    assert (run.status, run.due_at) == (RunStatus.WAITING_BUDGET, None)
    assert "in each run" in notices(goal)[0]


@pytest.mark.parametrize(("limit", "asked"), [("1", 1), ("0.0001", 0)])
def test_a_summary_is_paid_for_or_made_without_a_model(goal: Goal, llm: LLMServer, limit: str, asked: int) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(limit), None)
    talk(goal, 3)
    summaries(llm, Reply(SUMMARY, usage=(1000, 100)))
    archiving.archive_session(goal.thread_id, ArchiveReason.BY_HAND, at_once=True)
    archived = AgentHistory.objects.get(thread=goal.thread)
    assert (archived.summary == SUMMARY) == bool(asked)
    assert len(summary_requests(llm)) == asked
    assert only(budget).spent == asked * Decimal("0.00045")


def test_what_a_dead_worker_held_for_a_summary_counts_as_spent(goal: Goal, llm: LLMServer) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    call = ModelCall.objects.create(thread=goal.thread, provider="openai", model=PRICED)
    assert payment.reserve_beside(call, choice_for(goal.thread), "words") == payment.BESIDE_OUTPUT
    held = Budget.objects.get(pk=budget.pk).reserved
    assert held > 0
    sweeper.sweep()
    assert Budget.objects.get(pk=budget.pk).reserved == held, "it may be under way"
    ModelCall.objects.update(created_at=timezone.now() - timedelta(hours=1))
    sweeper.sweep()
    assert only(budget).spent == held
    call.refresh_from_db()
    assert (call.status, call.charged) == ("failed", held)


def test_what_a_deleted_goal_held_is_free_again(goal: Goal) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    run = AgentRun.objects.create(thread=goal.thread, status=RunStatus.RUNNING, lease_token=new_id())
    Reservation.objects.create(budget=budget, run=run, money=Decimal("0.5"))
    Budget.objects.filter(pk=budget.pk).update(reserved=Decimal("0.5"))
    monitor.examine(fix=True)
    assert Budget.objects.get(pk=budget.pk).reserved == Decimal("0.5")
    run.delete()
    monitor.examine(fix=True)
    only(budget)
