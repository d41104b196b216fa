"""C5: what a run says that waits for its budget, and what lets it go on."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from agents.budgets.models import Budget, Window
from agents.budgets.services import set_budget
from agents.connecting import Given, connect_model, make_default
from agents.engine import journal, payment
from agents.engine.endings import LOOK_AGAIN_AT_LATEST
from agents.models import ModelCall
from agents.services import assistant_of
from agents.stopping import delete_thread, stop_run
from goals.models import Goal
from goals.preferences import finish_welcome
from goals.services import choose_model, create_goal
from memory.models import AgentRun, RunStatus, ThreadMessage
from tests.agents.engine.test_budgets import PRICED, go_on, notices
from tests.agents.engine.test_orchestrator import NOTE
from tests.factories import bearer
from tests.llm_script import Reply
from tests.llm_server import LLMServer

type Say = Callable[..., AgentRun]


@pytest.fixture(autouse=True)
def priced(goal: Goal, llm: LLMServer) -> None:
    connect_model(goal.user, "openai", Given(PRICED, llm.url, "key-of-the-test"))


def now(run: AgentRun) -> AgentRun:
    return AgentRun.objects.get(pk=run.pk)


def test_more_that_was_allowed_just_before_the_wait_is_not_missed(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the budget and the wait nothing waits that could be woken."""
    set_budget(goal.user, Window.TOTAL, Decimal("0.0001"), None)
    llm.script([Reply("Hi.")])
    real = journal.wait

    def late(*args: Any) -> Any:
        monkeypatch.setattr(journal, "wait", real)
        set_budget(goal.user, Window.TOTAL, Decimal(50), None)
        return real(*args)

    monkeypatch.setattr(journal, "wait", late)
    run = say("Hi")
    assert now(run).status == RunStatus.SUCCEEDED


def test_every_wait_ends_by_itself_within_the_hour(goal: Goal, say: Say) -> None:
    """Whoever allowed more may have died before it woke the run."""
    set_budget(goal.user, Window.TOTAL, Decimal("0.0001"), None)
    due = say("Hi").due_at
    assert due is not None
    assert due < timezone.now() + timedelta(seconds=LOOK_AGAIN_AT_LATEST + 1)


def test_another_price_lets_a_run_go_on(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]) -> None:
    set_budget(goal.user, Window.MONTH, Decimal("0.0001"), None)
    run = say("Hi")
    assert run.status == RunStatus.WAITING_BUDGET
    llm.script([Reply("Hi.")])
    free = {"kind": "openai", "model": PRICED, "input": "0", "output": "0"}
    Client().post("/api/v1/prices", free, content_type="application/json", headers=bearer(goal.user))
    go_on(rung)
    assert now(run).status == RunStatus.SUCCEEDED


def test_another_model_of_the_goal_lets_a_run_go_on_once_it_is_committed(
    goal: Goal, say: Say, rung: list[UUID]
) -> None:
    """Before that a worker would find the model that it had."""
    set_budget(goal.user, Window.MONTH, Decimal("0.0001"), None)
    run = say("Hi")
    with transaction.atomic():
        choose_model(goal, None)
        assert (now(run).status, rung) == (RunStatus.WAITING_BUDGET, [])
    assert (now(run).status, rung) == (RunStatus.QUEUED, [run.pk])


def test_one_press_allows_as_much_as_is_missing(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    Budget.objects.filter(pk=budget.pk).update(spent=Decimal("36.63"))
    run = say("Hi")
    assert "$35.63 more than that is spent or held" in notices(goal)[0]
    client = Client()
    client.force_login(goal.user)
    finish_welcome(assistant_of(goal.user))
    for page in (f"/goals/{goal.pk}/", "/"):
        assert "Allow $36 more" in client.get(page).content.decode(), page
    llm.script([Reply("Hi.")])
    client.post(f"/settings/budget/{budget.pk}/more/?dollars=36")
    go_on(rung)
    assert now(run).status == RunStatus.SUCCEEDED
    budget.refresh_from_db()
    client.post(f"/settings/budget/{budget.pk}/more/?dollars=1e9")
    assert Budget.objects.get(pk=budget.pk).extra == budget.extra + 1


def test_a_budget_that_is_never_enough_does_not_promise_to_begin_anew(goal: Goal, say: Say) -> None:
    set_budget(goal.user, Window.DAY, Decimal("0.0001"), None)
    say("Hi")
    assert notices(goal)[0].endswith("I go on when you allow more.")


def test_who_has_used_up_a_budget_of_each_run_is_told_how_to_begin_another(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    set_budget(goal.user, Window.RUN, None, 30_000)
    llm.script([Reply(calls=[NOTE], usage=(29_000, 100))])
    say("Make a note")
    assert "what you write then begins a run of its own" in notices(goal)[0]


def test_a_run_that_waited_tells_all_that_it_had_done_when_it_is_stopped(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    set_budget(goal.user, Window.RUN, None, 30_000)
    llm.script([Reply(calls=[NOTE], usage=(29_000, 100))])
    run = say("Make a note")
    stop_run(run)
    go_on(rung)
    last = ThreadMessage.objects.filter(thread=goal.thread, source="agent").latest("position")
    assert last.content == "Stopped by you. Done before that: created a note Shoes."


def test_a_budget_of_another_goal_does_not_ask_for_a_price(goal: Goal, say: Say, llm: LLMServer) -> None:
    make_default(connect_model(goal.user, "compatible", Given("nobody-knows-it", llm.url, "key-of-the-test")))
    other = create_goal(goal.user, "Another")
    set_budget(goal.user, Window.TOTAL, Decimal(1), None, other.thread)
    llm.script([Reply("Hi.")])
    assert say("Hi").status == RunStatus.SUCCEEDED
    set_budget(goal.user, Window.TOTAL, Decimal(1), None, goal.thread)
    assert say("Hi").reason == "unpriced"


def test_the_budget_of_a_goal_is_set_over_the_api(goal: Goal) -> None:
    headers = bearer(goal.user)
    thread = Client().get(f"/api/v1/goals/{goal.pk}", headers=headers).json()["thread"]
    wanted = {"window": "month", "money": "2", "thread": thread}
    answer = Client().post("/api/v1/budgets", wanted, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["thread"]) == (200, str(goal.thread_id))


def test_what_was_not_told_when_it_was_spent_is_told_with_the_next_run(goal: Goal, say: Say, llm: LLMServer) -> None:
    """Spent by a run of a goal that is deleted in mid-call: there is no chat any more in which to say it."""
    set_budget(goal.user, Window.TOTAL, Decimal("0.1"), None)
    other = create_goal(goal.user, "Another")
    spent = Decimal("0.085")
    run = AgentRun.objects.create(
        thread=other.thread, status=RunStatus.SUCCEEDED, charged=spent, held=spent, metered=True
    )
    ModelCall.objects.create(run=run, step=1, attempt=1, provider="openai", model=PRICED, status="done", cost=spent)
    delete_thread(other.thread)
    assert Budget.objects.get().spent == spent
    llm.script([Reply("Hi.", usage=(10, 1)), Reply("Hi.", usage=(10, 1))])
    say("Hi")
    assert notices(goal) == ["Your budget of $0.10 in total is 85% spent."]
    say("Hi")
    assert len(notices(goal)) == 1


def test_a_run_that_waits_for_one_budget_leaves_the_word_about_another_to_the_next(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    mine = set_budget(goal.user, Window.TOTAL, Decimal("0.1"), None)
    set_budget(goal.user, Window.TOTAL, Decimal("0.0001"), None, goal.thread)
    Budget.objects.filter(pk=mine.pk).update(spent=Decimal("0.085"))
    run = say("Hi")
    AgentRun.objects.filter(pk=run.pk).update(metered=True)
    payment.let_go(run.pk)
    assert Budget.objects.get(pk=mine.pk).warned_at is None
