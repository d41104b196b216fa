"""Budgets that are set while runs are at work: all that these spend is counted once in each, and limits them."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.services import remove_budget, set_budget
from agents.connecting import Given, connect_model
from agents.connections import choice_for
from agents.engine import archiving, payment, sweeper, thinking
from agents.engine.thinking import Thinker
from agents.models import ModelCall
from agents.providers.base import Reply as Answer
from goals.models import Goal
from memory.models import AgentRun, ArchiveReason, RunStatus
from memory.pool import orm
from tests.agents.engine.test_archiving import SUMMARY, summaries, talk
from tests.agents.engine.test_orchestrator import NOTE
from tests.llm_script import Drop, Reply
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

MODEL = "gpt-5-mini"  # 0.25 and 2 dollars for a million tokens
SEARCH = ("search_notes", {"query": "shoes"})


@pytest.fixture(autouse=True)
def priced(goal: Goal, llm: LLMServer) -> None:
    connect_model(goal.user, "openai", Given(MODEL, llm.url, "key-of-the-test"))


@pytest.fixture
def once_answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], object]], None]:
    """Do something when the model has given its so-manieth answer, before it is recorded."""

    def at(number: int, what: Callable[[], object]) -> None:
        real, answers = Thinker._succeeded, []

        def succeeded(thinker: Thinker) -> None:
            real(thinker)
            answers.append(thinker)
            if len(answers) == number:
                with orm():
                    what()

        monkeypatch.setattr(Thinker, "_succeeded", succeeded)

    return at


def settled(window: Window) -> Budget:
    """The budget of a window, once nothing is held in it."""
    sweeper.sweep()
    budget = Budget.objects.get(window=window)
    assert budget.reserved == budget.reserved_tokens == 0
    assert not Reservation.objects.exists()
    assert not AgentRun.objects.filter(metered=True).exists()
    return budget


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_second_budget_takes_nothing_from_the_first(
    goal: Goal, say: Say, llm: LLMServer, once_answered: Callable[..., None], at: int
) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    seen: list[Budget] = []
    once_answered(at, lambda: seen.append(set_budget(goal.user, Window.DAY, Decimal(1), None, goal.thread)))
    usage = (100_000, 1000)
    llm.script([Reply(calls=[NOTE], usage=usage), Reply(calls=[SEARCH], usage=usage), Reply("Done.", usage=(2000, 50))])
    run = say("Make a note")
    assert run.status == RunStatus.SUCCEEDED
    assert settled(Window.MONTH).spent == settled(Window.DAY).spent == run.cost == Decimal("0.0546")
    assert seen[0].reserved > 0, "what is held for the run elsewhere is held in it from the first"


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_first_budget_counts_a_run_that_began_without_any(
    goal: Goal, say: Say, llm: LLMServer, once_answered: Callable[..., None], at: int
) -> None:
    once_answered(at, lambda: set_budget(goal.user, Window.MONTH, Decimal(1), None))
    usage = (100_000, 1000)
    llm.script([Reply(calls=[NOTE], usage=usage), Reply(calls=[SEARCH], usage=usage), Reply("Done.", usage=(2000, 50))])
    run = say("Make a note")
    assert run.status == RunStatus.SUCCEEDED
    budget = settled(Window.MONTH)
    assert (budget.spent, budget.spent_tokens) == (run.cost, 204_050)
    assert ("max_completion_tokens" in llm.requests[-1].body) == (at < 3)


@pytest.mark.parametrize("window", [Window.MONTH, Window.RUN])
def test_a_first_budget_limits_a_run_that_is_at_work_from_its_next_step(
    goal: Goal, say: Say, llm: LLMServer, once_answered: Callable[..., None], window: Window
) -> None:
    once_answered(1, lambda: set_budget(goal.user, window, Decimal("0.0001"), None))
    llm.script([Reply(calls=[NOTE], usage=(100_000, 1000)), Reply("Never asked for.")])
    run = say("Make a note")
    assert (run.status, run.step) == (RunStatus.WAITING_BUDGET, 1)
    assert len(llm.requests) == 1
    assert settled(window).spent == (run.cost if window == Window.MONTH else 0)


def test_the_worst_of_a_call_of_unknown_cost_counts_in_a_budget_that_comes_later(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    first = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Drop(after=Reply("Lost on the way.")), Reply("Here it is.", usage=(1000, 10))])
    run = say("Hi")
    first.refresh_from_db()
    assert first.spent == run.charged > run.cost
    later = set_budget(goal.user, Window.TOTAL, Decimal(1), None)
    assert (later.spent, later.spent_tokens) == (first.spent, first.spent_tokens)


def test_a_budget_that_replaces_the_only_one_goes_on_counting(
    goal: Goal, say: Say, llm: LLMServer, once_answered: Callable[..., None]
) -> None:
    month = set_budget(goal.user, Window.MONTH, Decimal(1), None)

    def replace() -> None:
        remove_budget(month)
        set_budget(goal.user, Window.DAY, Decimal(1), None)

    once_answered(2, replace)
    llm.script([Reply(calls=[NOTE], usage=(1000, 100)), Reply("Done.", usage=(2000, 50))])
    run = say("Make a note")
    assert settled(Window.DAY).spent == run.cost


def test_a_summary_that_is_under_way_counts_in_a_new_budget(
    goal: Goal, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(goal, 3)
    ask = thinking.ask

    def meanwhile(*given: Any) -> Answer:
        with orm():
            set_budget(goal.user, Window.MONTH, Decimal(1), None)
        return ask(*given)

    monkeypatch.setattr(thinking, "ask", meanwhile)
    summaries(llm, Reply(SUMMARY, usage=(1000, 100)))
    archiving.archive_session(goal.thread_id, ArchiveReason.BY_HAND, at_once=True)
    assert settled(Window.MONTH).spent == Decimal("0.00045")


def test_a_summary_that_is_paid_for_is_held_in_a_new_budget_too(goal: Goal) -> None:
    month = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    call = ModelCall.objects.create(thread=goal.thread, provider="openai", model=MODEL)
    payment.reserve_beside(call, choice_for(goal.thread), "words")
    day = set_budget(goal.user, Window.DAY, Decimal(1), None)
    month.refresh_from_db()
    assert (day.reserved, day.reserved_tokens) == (month.reserved, month.reserved_tokens) > (0, 0)
    call.status, call.input_tokens, call.output_tokens, call.cost = "done", 100, 10, Decimal("0.01")
    payment.settle_beside(call)
    assert settled(Window.MONTH).spent == settled(Window.DAY).spent == Decimal("0.01")
