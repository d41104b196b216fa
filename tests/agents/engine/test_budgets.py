"""I17: what a run spends is reserved before each call of its model, so that no budget is overspent (mission C5)."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import DataError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from agents import services
from agents.budgets import books, room
from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.purse import Purse
from agents.budgets.services import allow_more, remove_budget, set_budget
from agents.connecting import Given, choose_for_uses, connect_model
from agents.connections import choice_for
from agents.engine import archiving, jobs, payment, sweeper
from agents.engine.health import monitor
from agents.models import ModelCall, ModelPrice
from agents.providers.capabilities import Capabilities
from agents.services import assistant_of
from agents.stopping import stop_run
from goals.context import build
from goals.models import Goal
from goals.trail import needs
from memory.ids import new_id
from memory.models import AgentHistory, AgentRun, ArchiveReason, HistoryEntry, RunStatus, ThreadMessage
from memory.pool import execute
from tests.agents.engine.test_archiving import SUMMARY, summaries, summary_requests, talk
from tests.agents.engine.test_orchestrator import NOTE
from tests.agents.engine.test_recovery import Killed
from tests.factories import GoalFactory, UserFactory
from tests.llm_anthropic import started, text
from tests.llm_script import A, D, Drop, Raw, Reply, Request, Status, Step, event
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

PRICED = "gpt-5-mini"  # 0.25 and 2 dollars for a million tokens
DEARER = "gpt-5.1"  # 1.25 and 10
CLAUDE = "claude-opus-5-5"  # 4 and 20
SEARCH = ("search_notes", {"query": "shoes"})


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


def spoken(words: str) -> Status:
    return Status(400, body={"error": {"message": words, "type": "invalid_request_error"}})


def small_window(window: int, seen: list[int]) -> Callable[[Request], Step]:
    """Refuses what leaves less than is asked for, as vLLM does; a token has four bytes."""

    def answer(request: Request) -> Step:
        given, asked = len(request.raw) // 4, request.body["max_tokens"]
        seen.append(asked)
        if given + asked > window:
            words = (
                f"This model's maximum context length is {window} tokens. However, you requested {asked} output tokens"
            )
            return spoken(f"{words} and your prompt contains at least {given} input tokens")
        return Reply("Here I am.", usage=(given, 10))

    return answer


@pytest.mark.parametrize(("known", "calls"), [(True, 1), (False, 2)])
def test_a_budget_asks_for_no_more_than_a_small_window_leaves(
    goal: Goal, say: Say, llm: LLMServer, known: bool, calls: int
) -> None:
    can, asked = Capabilities(context_length=16_384 if known else None), list[int]()
    connect_model(goal.user, "compatible", Given("m", llm.url, "key-of-the-test", corrections=can))
    set_budget(goal.user, Window.MONTH, None, 1_000_000)
    llm.script([small_window(16_384, asked)] * 4)
    runs = [say("Hi"), say("And again")]
    assert {run.status for run in runs} == {RunStatus.SUCCEEDED}
    assert len(asked) == 2 * calls
    assert min(asked) >= 2_000
    assert not AgentHistory.objects.exists(), "nothing was archived for it"


def test_a_window_that_is_nearly_full_leaves_room_for_a_short_answer(goal: Goal, say: Say, llm: LLMServer) -> None:
    given = Given(PRICED, llm.url, "key-of-the-test", corrections=Capabilities(context_length=4_096))
    connect_model(goal.user, "openai", given)
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Hi.")])
    say("word " * 3_000)
    assert llm.requests[0].body["max_completion_tokens"] == 1_024


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8_192),
        ("max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas …", 4_096),
        ("max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for m", 8_192),
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the "
            "`context_window` for this model",
            8_192,
        ),
        ("`max_completion_tokens` must be <= 8192 within the context window", 8_192),
        ("Range of maxOutputTokens is wrong", 2_000),
    ],
)
def test_a_budget_asks_for_no_longer_answer_than_the_server_gives(
    goal: Goal, say: Say, llm: LLMServer, words: str, limit: int
) -> None:
    connect_model(goal.user, "compatible", Given("m", llm.url, "key-of-the-test"))
    budget = set_budget(goal.user, Window.MONTH, None, 1_000_000)
    llm.script([spoken(words), Reply(calls=[NOTE], usage=(1_000, 10)), Reply("Done.", usage=(1_000, 10))])
    run = say("Make a note")
    assert run.status == RunStatus.SUCCEEDED
    assert [request.body["max_tokens"] for request in llm.requests] == [16_000, limit, limit]
    assert set(HistoryEntry.objects.values_list("quarantine", flat=True)) == {""}
    assert only(budget).spent_tokens == 2_020


def test_a_limit_that_is_never_small_enough_does_not_make_the_history_plainer(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    talk(goal, 3)
    connect_model(goal.user, "compatible", Given("m", llm.url, "key-of-the-test"))
    set_budget(goal.user, Window.MONTH, None, 1_000_000)
    llm.always(spoken("Unsupported parameter: 'max_tokens' is not supported with this model."))
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "answer_limit")
    assert [request.body["max_tokens"] for request in llm.requests] == [16_000, 2_000]
    assert "Unsupported parameter: 'max_tokens'" in notices(goal)[-1]


def test_prv_10_a_conversation_that_is_too_long_is_shortened_under_a_budget_too(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    connect_model(goal.user, "compatible", Given("m", llm.url, "key-of-the-test"))
    set_budget(goal.user, Window.MONTH, None, 1_000_000)
    talk(goal, 40, size=300)
    summaries(llm, Reply(SUMMARY))
    llm.script([small_window(10_500, asked := list[int]())] * 9)
    assert say("Are you there?").status == RunStatus.SUCCEEDED
    assert AgentHistory.objects.get().reason == ArchiveReason.LONG
    assert asked == [16_000, 2_000, 16_000, 2_000]


@pytest.mark.parametrize("usage", [(10**12, 10), (1_000, 10**12)])
def test_a_count_that_no_call_can_have_does_not_use_up_the_budget(
    goal: Goal, say: Say, llm: LLMServer, usage: tuple[int, int]
) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply(calls=[NOTE], usage=usage), Reply("Done.", usage=(1_000, 10))])
    assert say("Make a note").status == RunStatus.SUCCEEDED
    assert only(budget).spent < Decimal("0.01")


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


def test_a_notice_that_most_is_spent_takes_no_try_away(goal: Goal, say: Say, llm: LLMServer) -> None:
    set_budget(goal.user, Window.TOTAL, Decimal("0.08"), None)
    costly = [Reply(calls=[NOTE], usage=(1_000, 16_000)), Reply(calls=[SEARCH], usage=(1_000, 16_000))]
    llm.script([*costly, Status(401, body={"error": {"message": "no such key"}})])
    say("Make a note")
    failed, notice = ThreadMessage.objects.filter(thread=goal.thread, source="error").order_by("position")
    assert "spent" in notice.content
    assert [need.message for need in needs(goal.user, build(goal.user).places())] == [failed]
    services.retry(failed)
    assert AgentRun.objects.filter(trigger="retry").exists()


def test_who_stops_a_run_that_waits_for_its_budget_stops_it(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    set_budget(goal.user, Window.MONTH, Decimal("0.0001"), None)
    run = say("Hi")
    stop_run(run)
    rung.clear()
    jobs.run(str(run.pk))
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert not rung
    assert not llm.requests


def test_the_figures_of_one_user_do_not_end_the_books_of_all(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = set_budget(goal.user, Window.MONTH, Decimal(1), None), GoalFactory.create()
    theirs = set_budget(other.user, Window.MONTH, Decimal(1), None)
    for each, budget in ((other, theirs), (goal, mine)):
        for fields in (_run_left(each), _call_left(each)):
            Reservation.objects.create(budget=budget, money=Decimal("0.25"), **fields)
        Budget.objects.filter(pk=budget.pk).update(reserved=Decimal("0.5"))
    book = books.book

    def overflowing(payer: books.Payer, *rest: Any) -> None:
        if payer.user_id == other.user_id:
            raise DataError("numeric field overflow")
        book(payer, *rest)

    monkeypatch.setattr(books, "book", overflowing)
    payment.sweep()
    mine.refresh_from_db()
    assert (mine.reserved, mine.spent) == (Decimal(0), Decimal("0.5"))


def _run_left(goal: Goal) -> dict[str, AgentRun]:
    run = AgentRun.objects.create(
        thread=goal.thread, status=RunStatus.SUCCEEDED, charged=Decimal("0.25"), held=Decimal("0.25"), metered=True
    )
    return {"run": run}


def _call_left(goal: Goal) -> dict[str, ModelCall]:
    return {"call": ModelCall.objects.create(thread=goal.thread, provider="openai", model=PRICED, status="failed")}


def test_dollars_are_offered_where_dollars_are_short(goal: Goal, say: Say, llm: LLMServer) -> None:
    set_budget(goal.user, Window.MONTH, Decimal(1), 500)
    say("Hi")
    waits = ThreadMessage.objects.get(thread=goal.thread, source="error")
    assert "500 tokens are left, and it may take up to" in waits.content
    assert "more" not in waits.metadata
    set_budget(goal.user, Window.MONTH, Decimal("0.0001"), None)
    say("Hi again")
    waits = ThreadMessage.objects.filter(thread=goal.thread, source="error").latest("position")
    assert "$0.0001 is left, and it may cost up to $" in waits.content
    assert waits.metadata["more"]


def test_in_the_middle_of_a_turn_no_finished_step_is_repeated(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    budget = set_budget(goal.user, Window.TOTAL, Decimal("0.012"), None)
    llm.script([Reply(calls=[NOTE], usage=(20_000, 1_000)), Reply("Done.", usage=(2000, 50))])
    run = say("Make a note")
    assert (run.status, run.step) == (RunStatus.WAITING_BUDGET, 1)
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


BEGUN = started({"input_tokens": 1_000, "output_tokens": 1})
SAID = text(0, *["word " * 100] * 20)
OVERLOADED = A("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})


@pytest.mark.parametrize("broken", [Drop([BEGUN, SAID]), Raw([BEGUN, SAID, OVERLOADED])], ids=["cut", "error"])
def test_an_answer_that_broke_off_uncounted_counts_at_its_worst(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings, broken: Step
) -> None:
    settings.WAYMARK_RETRY_HELD_SECONDS = 0.01
    connect_model(goal.user, "anthropic", Given(CLAUDE, llm.url, "key-of-the-test"))
    budget = set_budget(goal.user, Window.MONTH, Decimal(5), None)
    llm.script([broken, Reply("Here I am.", usage=(1_000, 10))])
    run = say("Hi")
    assert run.status == RunStatus.SUCCEEDED
    first, second = ModelCall.objects.filter(run=run).order_by("created_at")
    assert (first.input_tokens, first.output_tokens, first.cost) == (1_000, None, None)
    most = llm.requests[0].body["max_tokens"] * Decimal("0.00002")
    assert only(budget).spent > most + second.cost


def test_an_answer_that_was_ended_for_its_length_is_estimated(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_ANSWER_LENGTH = 3_200
    connect_model(goal.user, "anthropic", Given(CLAUDE, llm.url, "key-of-the-test"))
    budget = set_budget(goal.user, Window.MONTH, Decimal(5), None)
    llm.script([Raw([BEGUN, SAID])])
    run = say("Hi")
    (call,) = ModelCall.objects.filter(run=run)
    assert (call.input_tokens, call.estimated) == (1_000, True)
    assert call.output_tokens
    assert 800 <= call.output_tokens <= 1_200
    assert only(budget).spent == call.cost


HALF_A_CALL = D(
    {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"x": "' + "y" * 9_000}}]}
)


@pytest.mark.parametrize(
    ("failed", "counts"),
    [
        pytest.param(Drop(), True, id="hangs up when it has read everything"),
        pytest.param(Status(408), True, id="408"),
        pytest.param(Status(504), True, id="504"),
        pytest.param(Status(524), True, id="524"),
        pytest.param(Raw([HALF_A_CALL, event({"error": {"code": 502, "message": "x"}})]), True, id="502 in a stream"),
        pytest.param(Raw([event({"error": {"code": 504, "message": "x"}})]), True, id="504 in a stream"),
        pytest.param(Drop([HALF_A_CALL]), True, id="half a call"),
        pytest.param(Status(429), False, id="429"),
        pytest.param(Status(500), False, id="500"),
        pytest.param(Status(529), False, id="529"),
    ],
)
def test_a_failed_call_counts_unless_the_server_has_said_no_to_it(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings, failed: Step, counts: bool
) -> None:
    settings.WAYMARK_RETRY_HELD_SECONDS = 0.01
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([failed, Reply("Here I am.", usage=(1_000, 10))])
    assert say("Hi").status == RunStatus.SUCCEEDED
    most = llm.requests[0].body["max_completion_tokens"] * Decimal("0.000002")
    assert (only(budget).spent > most) is counts
    assert (only(budget).spent == Decimal("0.00027")) is not counts


def test_a_server_that_is_not_there_has_used_nothing(goal: Goal, say: Say, settings: Settings) -> None:
    settings.WAYMARK_RETRY_HELD_SECONDS = 0.01
    connect_model(goal.user, "openai", Given(PRICED, "http://127.0.0.1:1/v1", "key-of-the-test"))
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    run = say("Hi")
    assert run.status == RunStatus.RETRY_WAIT
    assert {call.cost for call in ModelCall.objects.filter(run=run)} == {Decimal(0)}
    assert only(budget).spent == 0


@pytest.mark.parametrize("address", ["", "http://127.0.0.1:1/v1"], ids=["500", "not there"])
def test_a_summary_that_nobody_has_begun_to_write_counts_nothing(goal: Goal, llm: LLMServer, address: str) -> None:
    connect_model(goal.user, "openai", Given(PRICED, address or llm.url, "key-of-the-test"))
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    talk(goal, 3)
    summaries(llm, Status(500))
    archiving.archive_session(goal.thread_id, ArchiveReason.BY_HAND, at_once=True)
    assert ModelCall.objects.get(thread=goal.thread).status == "failed"
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


def test_the_chat_offers_to_say_what_a_model_costs(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]) -> None:
    connect_model(goal.user, "compatible", Given("mine/own model", llm.url, "key-of-the-test"))
    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    llm.script([Reply("Hi.")])
    say("Hi")
    browser = Client()
    browser.force_login(goal.user)
    page = browser.get(reverse("goal", args=[goal.pk])).content.decode()
    assert "?kind=compatible&amp;model=mine%2Fown%20model" in page.replace("mine/own", "mine%2Fown")
    error = ThreadMessage.objects.get(thread=goal.thread, source="error")
    assert reverse("message_free", args=[error.pk]) in page
    stranger = Client()
    stranger.force_login(UserFactory.create())
    assert stranger.post(reverse("message_free", args=[error.pk])).status_code == 404
    assert not ModelPrice.objects.exists()
    browser.post(reverse("message_free", args=[error.pk]))
    go_on(rung)
    run = AgentRun.objects.filter(thread=goal.thread).latest("created_at")
    assert (run.status, run.cost, run.cost_known) == (RunStatus.SUCCEEDED, Decimal(0), True)
    assert browser.post(reverse("message_free", args=[error.pk])).status_code != 500


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
    unattended = room.limit(budget, attended=False)
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
    assert run.status == RunStatus.WAITING_BUDGET
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
