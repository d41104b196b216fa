"""Money is exact, and what is not known stays unknown."""

from decimal import Decimal

import pytest

from agents.providers.base import Price, Usage
from agents.providers.pricing import charge, cost, price_of

PRICE = Price(Decimal("2.50"), Decimal("10"), Decimal("0.25"), "a test", "2026-11-27")


def test_cos_01_a_cached_tokens_are_part_of_the_input() -> None:
    assert charge(PRICE, Usage(20_000, 900, 16_000)) == Decimal("0.023")


def test_cos_01_c_missing_details_mean_nothing_cached() -> None:
    assert charge(PRICE, Usage(20_000, 900)) == Decimal("0.059")


def test_cos_01_d_a_broken_count_is_never_negative() -> None:
    assert charge(PRICE, Usage(100, 0, 5_000)) == Decimal("0.000025")


def test_many_small_amounts_add_up_exactly() -> None:
    each = charge(PRICE, Usage(15, 0))
    assert each == Decimal("0.0000375")
    assert sum([each] * 100_000) == Decimal("3.75")


@pytest.mark.parametrize("kind", ["demo", "ollama"])
def test_what_runs_at_home_costs_nothing_whatever_is_counted(kind: str) -> None:
    assert cost("llama3", kind, Usage(1000, 1000)) == 0
    assert cost("llama3", kind, Usage()) == 0


def test_an_unknown_model_or_unknown_tokens_are_not_free() -> None:
    assert cost("new-model-x", "openai", Usage(1, 1)) is None
    assert cost("gpt-5", "compatible", Usage(1, 1)) is None
    assert cost("gpt-5", "openai", Usage()) is None


def test_a_snapshot_costs_what_its_model_costs() -> None:
    assert price_of("gpt-5-2025-08-07", "openai") == price_of("gpt-5", "openai") is not None
    assert cost("gpt-5-mini", "openai", Usage(1_000_000, 1_000_000, 0)) == Decimal("2.25")


def test_an_unknown_kind_is_a_mistake_of_ours() -> None:
    with pytest.raises(LookupError):
        cost("gpt-5", "nobody", Usage(1, 1))
