"""Money is exact, and what is not known stays unknown."""

import socket
import sys
from decimal import Decimal

import pytest

from agents.providers import price_list
from agents.providers.base import Endpoint, Price, Usage
from agents.providers.pricing import MOST_TOKENS, Prices, charge, is_free, plausible, price_of

PRICE = Price(Decimal("2.50"), Decimal("10"), Decimal("0.25"), "a test", "2026-11-27")
CLAUDE = Price(Decimal(3), Decimal(15), Decimal("0.30"), "a test", "2026-11-27", written=Decimal("3.75"))


def cost(model: str, kind: str, usage: Usage, url: str = "") -> Decimal | None:
    return Prices().cost(Endpoint(kind, url), model, usage)


def test_cos_01_a_cached_tokens_are_part_of_the_input() -> None:
    assert charge(PRICE, Usage(20_000, 900, 16_000)) == Decimal("0.023")


def test_cos_01_b_tokens_read_from_the_cache_and_written_to_it_are_each_counted_once() -> None:
    usage = Usage(60 + 80_000 + 2_000, 500, 80_000, 2_000)
    assert usage.input_tokens == 82_060
    assert charge(CLAUDE, usage) == Decimal("0.03918")


def test_cos_01_c_missing_details_mean_nothing_cached() -> None:
    assert charge(PRICE, Usage(20_000, 900)) == Decimal("0.059")


def test_cos_01_d_a_broken_count_is_never_negative() -> None:
    assert charge(PRICE, Usage(100, 0, 5_000)) == Decimal("0.000025")
    assert charge(CLAUDE, Usage(100, 0, 80, 5_000)) == (80 * Decimal("0.30") + 20 * Decimal("3.75")) / 1_000_000


def test_cos_02_d_many_small_amounts_add_up_exactly() -> None:
    each = charge(PRICE, Usage(15, 0))
    assert each == Decimal("0.0000375")
    assert sum([each] * 100_000) == Decimal("3.75")


def test_a_long_request_costs_what_long_ones_cost_as_a_whole() -> None:
    price = price_of("gemini-2.5-pro", "compatible", "https://generativelanguage.googleapis.com/v1beta/openai")
    assert price is not None
    short, long = charge(price, Usage(200_000, 1_000)), charge(price, Usage(200_001, 1_000))
    assert short == (200_000 * price.input + 1_000 * price.output) / 1_000_000
    [(start, dearer)] = price.longer
    assert start == 200_000
    assert dearer.input > price.input
    assert long == (200_001 * dearer.input + 1_000 * dearer.output) / 1_000_000


@pytest.mark.parametrize("kind", ["demo", "ollama"])
def test_what_runs_at_home_costs_nothing_whatever_is_counted(kind: str) -> None:
    assert cost("llama3", kind, Usage(1000, 1000)) == 0
    assert cost("llama3", kind, Usage()) == 0


def test_cos_03_a_an_unknown_model_or_unknown_tokens_are_not_free() -> None:
    assert cost("new-model-x", "openai", Usage(1, 1)) is None
    assert cost("gpt-5", "compatible", Usage(1, 1), "https://gateway.example/v1") is None
    assert cost("gpt-5", "openai", Usage()) is None


def test_what_was_refused_before_it_was_worked_on_costs_nothing_at_whatever_price() -> None:
    assert cost("new-model-x", "openai", Usage(0, 0)) == 0


def test_a_snapshot_costs_what_its_model_costs() -> None:
    assert price_of("gpt-5-2025-08-07", "openai") == price_of("gpt-5", "openai") is not None
    assert cost("gpt-5-mini", "openai", Usage(1_000_000, 1_000_000, 0)) == Decimal("2.25")


@pytest.mark.parametrize(
    ("kind", "url", "model"),
    [
        ("openai", "", "gpt-5.4-mini"),
        ("openai", "https://proxy.example/v1", "gpt-5.4-mini"),
        ("openrouter", "", "anthropic/claude-sonnet-4.5"),
        ("compatible", "https://api.anthropic.com/v1", "claude-sonnet-4-5"),
        ("compatible", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
        ("compatible", "https://api.deepseek.com", "deepseek-chat"),
        ("compatible", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash"),
    ],
)
def test_the_list_covers_the_vendors_that_people_use(kind: str, url: str, model: str) -> None:
    price = price_of(model, kind, url)
    assert price is not None
    assert price.input > 0
    assert price.output > price.input
    assert 0 < price.cached <= price.input
    assert all(isinstance(each, Decimal) for each in (price.input, price.output, price.cached))
    assert price.source.startswith("https://")
    assert price.date.startswith("genai-prices ")


def test_a_price_is_looked_up_once_and_never_over_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("prices are read from the package")

    price_list._list_price.cache_clear()
    monkeypatch.setattr(socket.socket, "connect", refused)
    assert price_of("gpt-5", "openai")
    looked_up = price_list._list_price.cache_info().misses
    assert [price_of("gpt-5", "openai") for _ in range(50)][-1]
    assert price_list._list_price.cache_info().misses <= looked_up + 1, "no more than one for a new quarter of an hour"


def test_a_model_that_is_paid_by_the_call_is_not_made_to_look_cheap() -> None:
    from genai_prices.types import ModelPrice

    figures = {"input_mtok": Decimal(1), "output_mtok": Decimal(1)}
    assert price_list._read(ModelPrice(**figures), "a test")
    assert price_list._read(ModelPrice(**figures, requests_kcount=Decimal(5)), "a test") is None
    assert price_list._read(ModelPrice(), "a test") is None


def test_free_models_are_charged_without_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    price_list._list_price.cache_clear()
    assert cost("llama3", "ollama", Usage(5, 5)) == 0
    assert cost("gpt-5", "openai", Usage()) is None


def test_what_the_vendor_says_it_charged_goes_before_every_price() -> None:
    own = Prices({("openai", "gpt-5"): PRICE})
    usage = Usage(1000, 1000, cost=Decimal("0.0123"))
    assert own.cost(Endpoint("openai"), "gpt-5", usage) == Decimal("0.0123")
    assert cost("new-model-x", "openrouter", usage) == Decimal("0.0123")


def test_a_model_that_is_free_by_its_name_costs_nothing() -> None:
    free = price_of("qwen/qwen3-coder:free", "openrouter")
    assert free
    assert is_free(free)
    assert price_of("qwen3-coder:free", "compatible", "http://127.0.0.1:1234/v1") is None


def test_cos_03_b_a_price_of_zero_is_zero_also_without_counts() -> None:
    free = Prices({("compatible", "mine"): Price(Decimal(0), Decimal(0), Decimal(0), "a test", "")})
    endpoint = Endpoint("compatible", "http://192.0.2.1/v1")
    assert free.cost(endpoint, "mine", Usage(10, 10)) == free.cost(endpoint, "mine", Usage()) == 0
    assert free.cost(endpoint, "other", Usage(10, 10)) is None


def test_cos_03_c_the_model_that_answers_is_charged_unless_a_person_has_set_a_price() -> None:
    openai = Endpoint("openai")
    usage = Usage(1_000_000, 0, model="gpt-5-mini-2025-08-07")
    assert Prices().cost(openai, "alias", usage) == Decimal("0.25")
    assert Prices().cost(openai, "gpt-5", usage) == Decimal("0.25"), "what has answered is what is billed"
    assert Prices({("openai", "alias"): PRICE}).cost(openai, "alias", usage) == Decimal("2.50")
    answered = Prices({("openai", usage.model): PRICE})
    assert answered.cost(openai, "gpt-5", usage) == Decimal("2.50")
    unknown = Usage(1_000_000, 0, model="who-knows")
    assert Prices().cost(openai, "gpt-5", unknown) == Decimal("1.25")


@pytest.mark.parametrize("said", ["-1", "NaN", "Infinity", "1e30"])
def test_a_charge_that_nobody_can_mean_is_unknown(said: str) -> None:
    assert plausible(Usage(1, 1, cost=Decimal(said))).cost is None
    assert plausible(Usage(MOST_TOKENS + 1, 1, MOST_TOKENS)) == Usage(None, 1, MOST_TOKENS)


def test_an_unknown_kind_is_a_mistake_of_ours() -> None:
    with pytest.raises(LookupError):
        cost("gpt-5", "nobody", Usage(1, 1))
