"""What a call may come to at most: no usage of so many tokens costs more."""

from decimal import Decimal
from itertools import product

import pytest

from agents.budgets.worst import cost_at_most, output_within
from agents.providers.base import Price, Usage
from agents.providers.pricing import charge


@pytest.mark.parametrize("cached", ["0.1", "1", "10"])
@pytest.mark.parametrize("written", [None, "0.5", "1.25", "7"])
def test_no_share_of_the_cache_costs_more_than_the_worst(cached: str, written: str | None) -> None:
    price = Price(Decimal(1), Decimal(2), Decimal(cached), "", "", Decimal(written) if written else None)
    worst = cost_at_most(price, 1000, 100)
    costs = [
        charge(price, Usage(1000, 100, cached_tokens=read, written_tokens=wrote))
        for read, wrote in product((0, 400, 1000), repeat=2)
    ]
    assert max(cost or 0 for cost in costs) == worst.money
    assert worst.tokens == 1100


def test_a_long_request_is_reckoned_at_what_long_ones_cost() -> None:
    dear = Price(Decimal(10), Decimal(20), Decimal(1), "", "")
    price = Price(Decimal(1), Decimal(2), Decimal("0.1"), "", "", longer=((1000, dear),))
    assert cost_at_most(price, 1001, 100).money == charge(price, Usage(1001, 100))
    assert output_within(price, 1001, cost_at_most(price, 1001, 100)) == 100


def test_without_a_price_only_tokens_are_known() -> None:
    assert cost_at_most(None, 1000, 100) == (Decimal(0), 1100)
