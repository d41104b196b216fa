"""What a call costs, in US dollars. A price that is not known stays unknown: never zero, never a guess."""

import re
from decimal import Decimal

from agents.providers.base import Price, Usage
from agents.providers.catalog import kind_of

_SOURCE = "https://developers.openai.com/api/docs/pricing"
_DATE = "2026-11-05"
_MILLION = Decimal(1_000_000)
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def _price(fresh: str, cached: str, output: str) -> Price:
    return Price(Decimal(fresh), Decimal(output), Decimal(cached), _SOURCE, _DATE)


# Standard tier, per million tokens. Models whose published figures differ between sources are left out.
_OPENAI = {
    "gpt-5.4-mini": _price("0.75", "0.075", "4.50"),
    "gpt-5.4-nano": _price("0.20", "0.02", "1.25"),
    "gpt-5.1": _price("1.25", "0.125", "10.00"),
    "gpt-5": _price("1.25", "0.125", "10.00"),
    "gpt-5-mini": _price("0.25", "0.025", "2.00"),
    "gpt-5-nano": _price("0.05", "0.005", "0.40"),
    "gpt-4.1": _price("2.00", "0.50", "8.00"),
    "gpt-4.1-mini": _price("0.40", "0.10", "1.60"),
    "gpt-4.1-nano": _price("0.10", "0.025", "0.40"),
    "gpt-4o": _price("2.50", "1.25", "10.00"),
    "gpt-4o-mini": _price("0.15", "0.075", "0.60"),
}
_FREE = Price(Decimal(0), Decimal(0), Decimal(0), "Runs on your own machine.", _DATE)


def price_of(model: str, kind: str) -> Price | None:
    """Return the list price of `model` at a provider of `kind`; None when it is not known.

    A dated snapshot costs what its model costs. Raises: LookupError for an unknown kind.
    """
    if kind_of(kind).is_free:
        return _FREE
    return _OPENAI.get(_SNAPSHOT.sub("", model)) if kind == "openai" else None


def charge(price: Price, usage: Usage) -> Decimal | None:
    """Return the exact cost of `usage` at `price`. Cached tokens are part of the input (case COS-01); never negative.

    None when the tokens are not known, unless they are free anyway.
    """
    if not (price.input or price.output):
        return Decimal(0)
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    fresh = usage.input_tokens - cached
    return (fresh * price.input + cached * price.cached + usage.output_tokens * price.output) / _MILLION


def cost(model: str, kind: str, usage: Usage) -> Decimal | None:
    """Return what a call cost in US dollars; None when the price or the tokens are unknown."""
    price = price_of(model, kind)
    return charge(price, usage) if price else None


def dollars(amount: Decimal) -> str:
    """Return an amount as a plain decimal: no exponent, no trailing zeros."""
    return f"{amount.normalize():f}"
