"""List prices of models: the table that genai-prices keeps, as it lies in the package. Nothing is fetched at run time.

It is imported when the first price is asked for (4 MB and 0.15 s beside the SDK of a vendor; docs/decisions/0005).
"""

import time
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from agents.providers.base import Price

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

# Some vendors are cheaper at night, and prices change on a day: a price that was looked up is taken for so long.
KEPT_SECONDS = 900
# What a price may hold that Waymark has no count of; a model that has it would look cheaper than it is.
_UNCOUNTED = ("requests_kcount",)


def list_price(model: str, address: str) -> Price | None:
    """Return the standard price of `model` at the vendor whose API is at `address`; None when the list has none."""
    return _list_price(model, address, int(time.time() // KEPT_SECONDS))


@lru_cache(1_000)
def _list_price(model: str, address: str, moment: int) -> Price | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        vendor, found = get_snapshot().find_provider_model(model, None, None, address)
    except LookupError:
        return None
    prices = found.get_prices(datetime.fromtimestamp(moment * KEPT_SECONDS, UTC))
    source = next(iter(vendor.pricing_urls or ()), vendor.name)
    return _read(prices, source)


def _read(prices: "ModelPrice", source: str) -> Price | None:
    if any(getattr(prices, key) is not None for key in _UNCOUNTED):
        return None
    edition = f"genai-prices {version('genai-prices')}"
    starts = sorted({tier.start for value in vars(prices).values() for tier in getattr(value, "tiers", ())})
    longer = tuple((start, price) for start in starts if (price := _at(prices, start + 1, source, edition)))
    return _at(prices, 0, source, edition, longer)


def _at(
    prices: "ModelPrice", tokens: int, source: str, edition: str, longer: tuple[tuple[int, Price], ...] = ()
) -> Price | None:
    """The prices of a request with so many input tokens. What has no figure of its own costs what all input costs."""
    fresh, output = _figure(prices.input_mtok, tokens), _figure(prices.output_mtok, tokens)
    if fresh is None or output is None:
        return None
    cached, written = _figure(prices.cache_read_mtok, tokens), _figure(prices.cache_write_mtok, tokens)
    return Price(fresh, output, fresh if cached is None else cached, source, edition, written, longer)


def _figure(value: object, tokens: int) -> Decimal | None:
    """One figure, which may depend on the length of the request."""
    tiers = getattr(value, "tiers", None)
    if tiers is not None:
        reached = [tier.price for tier in tiers if tokens > tier.start]
        value = reached[-1] if reached else getattr(value, "base", None)
    return value if isinstance(value, Decimal) else None
