"""Section 11 of the cases, through the job that RQ calls and a model server over HTTP: what was used, what it cost."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from agents.budgets.models import Window
from agents.budgets.services import set_budget
from agents.models import CallStatus, ModelCall, ModelPrice
from agents.prices import set_price
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from tests.factories import bearer, think_with
from tests.llm_anthropic import started, stopped, text
from tests.llm_openrouter import OpenRouterServer, Routed
from tests.llm_script import DONE, D, Drop, F, Raw, Reply, Status, event
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

HELLO = D({"role": "assistant", "content": "Hello"})
NOTHING = {"name": "create_note", "arguments": '{"title":'}
LONG = "Half a thousand characters of an answer. " * 12 + "The end."


@pytest.fixture(autouse=True)
def no_pauses(settings: Settings) -> None:
    settings.WAYMARK_RETRY_HELD_SECONDS = 0.01


def priced(user: User, model: str = "test-model", **figures: object) -> ModelPrice:
    return set_price(user, "compatible", model, **{"input": "2.50", "cached": "0.25", "output": 10, **figures})


def usage(prompt: int, completion: int, model: str = "m", **more: object) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}
    return event({"id": "c1", "object": "chat.completion.chunk", "model": model, "choices": [], "usage": counts})


def answer(*counted: bytes, text: str = "Hello") -> Raw:
    return Raw([D({"role": "assistant", "content": text}), F("stop"), *counted, DONE])


def only_call(run: AgentRun) -> ModelCall:
    return ModelCall.objects.get(run=run)


@pytest.mark.parametrize(
    ("details", "expected", "cached"),
    [
        pytest.param({"prompt_tokens_details": {"cached_tokens": 16_000}}, "0.023", 16_000, id="cos_01_a"),
        pytest.param({}, "0.059", None, id="cos_01_c_missing"),
        pytest.param({"prompt_tokens_details": None}, "0.059", None, id="cos_01_c_null"),
        pytest.param({"prompt_tokens_details": {"cached_tokens": None}}, "0.059", None, id="cos_01_c_null_within"),
        pytest.param({"prompt_tokens_details": {"cached_tokens": 90_000}}, "0.014", 90_000, id="cos_01_d"),
    ],
)
def test_cos_01_cached_tokens_are_a_part_of_the_input(
    goal: Goal, say: Say, llm: LLMServer, details: dict[str, Any], expected: str, cached: int | None
) -> None:
    priced(goal.user)
    llm.script([answer(usage(20_000, 900, **details))])
    run = say("Hi")
    call = only_call(run)
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (20_000, 900, cached)
    assert (call.cost, call.estimated) == (Decimal(expected), False)
    assert (run.cost, run.cost_known, run.input_tokens) == (Decimal(expected), True, 20_000)


def test_cos_01_b_what_is_read_from_the_cache_and_written_to_it_is_each_counted_once(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    think_with(goal.user, llm.url, "key-of-the-test", "anthropic")
    set_price(goal.user, "anthropic", "test-model", input=3, output=15, cached="0.30", written="3.75")
    begun = {"input_tokens": 60, "cache_read_input_tokens": 80_000, "cache_creation_input_tokens": 2_000}
    llm.script([Raw([started({**begun, "output_tokens": 1}), text(0, "Hello"), stopped("end_turn", 500)])])
    run = say("Hi")
    assert only_call(run).cost == run.cost == Decimal("0.03918")
    assert (run.input_tokens, run.cached_tokens, run.written_tokens) == (82_060, 80_000, 2_000)
    assert only_call(run).written_tokens == 2_000


def test_what_the_vendor_itself_charges_goes_before_prices(goal: Goal, say: Say) -> None:
    with OpenRouterServer() as router:
        think_with(goal.user, router.url, "key-of-the-test", "openrouter")
        set_price(goal.user, "openrouter", "test-model", input=3, output=15)
        charge = event({"id": "c1", "choices": [], "usage": {"cost": 0.5}})
        router.script([Routed("Hello", usage=(20_000, 900), cost=0.0271), answer(charge)])
        counted, uncounted = say("Hi"), say("Hi")
    assert only_call(counted).cost == counted.cost == Decimal("0.0271")
    assert only_call(uncounted).cost == uncounted.cost == Decimal("0.5")
    assert (only_call(counted).estimated, only_call(uncounted).estimated) == (False, True)


@pytest.mark.parametrize(
    ("cost", "kept"),
    [
        ('"1E-1000000"', 0),
        ('"0.' + "0" * 20_000 + '1"', 0),
        ("1e-12", 0),
        ("-0.0", 0),
        ('"1E+1000000"', None),
        ('"9E999999"', None),
        ('"0.1234567894"', "0.123456789"),
    ],
)
@pytest.mark.parametrize("own", [False, True], ids=["", "own_key"])
def test_an_amount_that_no_row_holds_is_booked_as_one_or_is_unknown(
    goal: Goal, say: Say, cost: str, kept: object, own: bool
) -> None:
    beside = f', "is_byok": true, "cost_details": {{"upstream_inference_cost": {cost}}}' if own else ""
    said = f'data: {{"id": "c1", "choices": [], "usage": {{"cost": {cost}{beside}}}}}\n\n'
    with OpenRouterServer() as router:
        think_with(goal.user, router.url, "key-of-the-test", "openrouter")
        router.script([answer(said.encode())])
        run = say("Hi")
        assert len(router.requests) == 1
    call = only_call(run)
    times = 2 if own else 1
    assert (run.status, call.status) == (RunStatus.SUCCEEDED, CallStatus.DONE)
    assert call.cost == (None if kept is None else Decimal(str(kept)) * times)


def test_more_than_any_call_costs_is_not_booked(goal: Goal, say: Say, llm: LLMServer) -> None:
    priced(goal.user, input=100_000, output=100_000)
    llm.script([answer(usage(10**9, 10**9))])
    assert only_call(say("Hi")).cost == 1_000_000


def test_cos_02_a_running_totals_are_not_summed_up(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Raw([HELLO, *(usage(7, said) for said in range(1, 101)), F("stop"), DONE])])
    run = say("Hi")
    assert (run.input_tokens, run.output_tokens) == (7, 100)
    assert not only_call(run).is_partial


def test_cos_02_c_what_was_counted_before_the_line_broke_is_kept_and_marked_partial(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    priced(goal.user)
    llm.script([Drop([HELLO, *(usage(7, said) for said in range(1, 61))]), answer(usage(7, 2))])
    run = say("Hi")
    broken, whole = ModelCall.objects.filter(run=run).order_by("created_at")
    assert (broken.status, broken.input_tokens, broken.output_tokens) == (CallStatus.FAILED, 7, 60)
    assert broken.is_partial
    assert not whole.is_partial
    assert broken.cost == (7 * Decimal("2.50") + 60 * 10) / 1_000_000
    assert run.cost == broken.cost + (whole.cost or 0)


def test_cos_02_e_prices_of_any_spelling_are_the_same_decimals(goal: Goal, say: Say, llm: LLMServer) -> None:
    for spelling in ("0.10", "1e-1", 0.1, Decimal("0.1"), " $0.100 "):
        price = priced(goal.user, input=spelling, cached=None, output=1e-6)
        price.refresh_from_db()
        assert (price.input, price.output, price.cached) == (Decimal("0.1"), Decimal("0.000001"), None)
    llm.script([answer(usage(1_000_000, 1_000_000))])
    assert say("Hi").cost == Decimal("0.100001")


@pytest.mark.parametrize("more", [D({"content": " there"}), D({"tool_calls": [{"index": 0, "function": NOTHING}]})])
def test_cos_02_c_what_was_counted_before_the_rest_came_is_no_count_of_it(
    goal: Goal, say: Say, llm: LLMServer, more: bytes
) -> None:
    llm.script([Drop([HELLO, usage(7, 1), more]), answer(usage(7, 2))])
    broken, whole = ModelCall.objects.filter(run=say("Hi")).order_by("created_at")
    assert (broken.input_tokens, broken.output_tokens, broken.cost) == (7, None, None)
    assert (whole.output_tokens, whole.estimated) == (2, False)


@pytest.mark.parametrize(
    ("total", "output"),
    [
        pytest.param(14_428, 4_308, id="reasoning beside the completion"),
        pytest.param(11_619, 1_499, id="reasoning in the completion"),
        pytest.param(1_499, 1_499, id="a total that is none"),
        pytest.param(None, 1_499, id="no total"),
    ],
)
def test_reasoning_is_output_wherever_it_is_counted(
    goal: Goal, say: Say, llm: LLMServer, total: int | None, output: int
) -> None:
    priced(goal.user)
    details = {"reasoning_tokens": 2_809}
    llm.script([answer(usage(10_120, 1_499, total_tokens=total, completion_tokens_details=details))])
    run = say("Hi")
    assert (run.input_tokens, run.output_tokens) == (10_120, output)
    assert run.cost == (10_120 * Decimal("2.50") + output * 10) / 1_000_000


def test_cos_03_a_a_model_without_a_price_answers_and_its_cost_is_unknown(goal: Goal, say: Say, llm: LLMServer) -> None:
    goal.user.model_connections.update(model="new-model-x")
    llm.script([answer(usage(100, 10))])
    run = say("Hi")
    assert run.status == "succeeded"
    assert only_call(run).cost is None
    assert (run.cost, run.cost_known) == (Decimal(0), False)


def test_cos_03_b_a_local_model_at_price_zero_is_really_free(goal: Goal, say: Say, llm: LLMServer) -> None:
    priced(goal.user, input="0", cached=None, output="0")
    llm.script([answer(usage(100, 10))])
    run = say("Hi")
    assert only_call(run).cost == 0
    assert (run.cost, run.cost_known) == (Decimal(0), True)


def test_cos_03_c_a_reply_of_another_model_is_charged_by_the_rule_and_says_who_answered(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    goal.user.model_connections.update(kind="openai", model="alias")
    llm.script([answer(usage(1_000_000, 100, model="gpt-5-mini-2025-08-07"))])
    call = only_call(say("Hi"))
    assert (call.model, call.answered_by) == ("alias", "gpt-5-mini-2025-08-07")
    assert call.cost == Decimal("0.2502")


def test_cos_03_c_a_price_that_a_person_has_set_for_the_alias_holds(goal: Goal, say: Say, llm: LLMServer) -> None:
    priced(goal.user)
    llm.script([answer(usage(1_000_000, 100, model="real-2026-10-01"))])
    assert only_call(say("Hi")).cost == Decimal("2.501")


@pytest.mark.parametrize(
    "counted",
    [pytest.param((), id="cos_03_d_none"), pytest.param((usage(0, 0),), id="cos_03_e_all_zeros")],
)
def test_cos_03_d_e_what_was_not_counted_is_estimated_and_marked(
    goal: Goal, say: Say, llm: LLMServer, counted: tuple[bytes, ...]
) -> None:
    priced(goal.user)
    assert len(LONG) == 500
    llm.script([answer(*counted, text=LONG)])
    run = say("Hi")
    call = only_call(run)
    assert call.estimated
    assert call.output_tokens == 157, "500 / 3.2, which is more than 86 words times 1.35"
    sent = len(llm.requests[0].raw)
    assert call.input_tokens
    assert sent / 8 < call.input_tokens < sent / 2
    assert call.cost == (call.input_tokens * Decimal("2.50") + 157 * 10) / 1_000_000
    assert (run.cost, run.cost_known) == (call.cost, True)


def test_cos_03_d_one_count_that_is_missing_is_estimated_alone(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Raw([HELLO, F("stop"), event({"choices": [], "usage": {"prompt_tokens": 42}}), DONE])])
    call = only_call(say("Hi"))
    assert (call.input_tokens, call.output_tokens, call.estimated) == (42, 2, True)


def test_cos_03_f_what_was_charged_keeps_its_price(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.always(answer(usage(1_000_000, 100)))
    before = priced(goal.user)
    first = say("Hi")
    priced(goal.user, input="5")
    second = say("Hi again")
    assert ModelPrice.objects.get().pk == before.pk
    first.refresh_from_db()
    assert (first.cost, second.cost) == (Decimal("2.501"), Decimal("5.001"))
    assert [call.cost for call in ModelCall.objects.order_by("created_at")] == [Decimal("2.501"), Decimal("5.001")]


def test_a_price_for_everybody_gives_way_to_ones_own(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.always(answer(usage(1_000_000, 100)))
    ModelPrice.objects.create(user=None, kind="compatible", model="test-model", input=3, output=3)
    assert say("Hi").cost == Decimal("3.0003")
    priced(goal.user)
    assert say("Hi").cost == Decimal("2.501")


def test_a_call_that_was_refused_costs_nothing_at_an_unknown_price(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Status(401, body={"error": {"message": "invalid api key"}})])
    run = say("Hi")
    assert run.status == "failed"
    assert only_call(run).cost == 0
    assert run.cost_known


def test_a_call_that_broke_at_the_server_may_have_cost_something(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Status(500), Reply(text="Hello")])
    priced(goal.user)
    run = say("Hi")
    assert [call.cost is None for call in ModelCall.objects.order_by("created_at")] == [True, False]
    assert not run.cost_known


def test_figures_that_fit_nowhere_do_not_lose_the_answer(goal: Goal, say: Say, llm: LLMServer) -> None:
    priced(goal.user)
    most = 2**63 - 1
    llm.script([answer(usage(most, most, prompt_tokens_details={"cached_tokens": most}))])
    run = say("Hi")
    assert run.status == "succeeded"
    call = only_call(run)
    assert call.estimated
    assert call.cached_tokens is None
    assert run.cost < 1


def test_a_call_that_the_budget_did_not_allow_is_none(goal: Goal, say: Say, llm: LLMServer) -> None:
    think_with(goal.user, llm.url)
    priced(goal.user)
    set_budget(goal.user, Window.MONTH, Decimal("0.0001"), None)
    say("Hi")
    assert not llm.requests
    assert ModelCall.objects.exists()
    found = Client(headers=bearer(goal.user)).get("/api/v1/costs").json()
    assert (found["results"], found["total"]["calls"]) == ([], 0)
