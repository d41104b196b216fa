"""What a call costs, in US dollars. A price that is not known stays unknown: never zero, never a guess."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from agents.providers.base import Endpoint, Price, Usage
from agents.providers.catalog import kind_of
from agents.providers.price_list import list_price
from memory.text import clip

_MILLION = Decimal(1_000_000)
_FREE = Price(Decimal(0), Decimal(0), Decimal(0), "Runs on your own machine.", "")
_NOTHING = Price(Decimal(0), Decimal(0), Decimal(0), "Its name says that it is free.", "")
# More than any call uses or costs. Servers say such figures too, and they would not fit into a row.
MOST_TOKENS = 10**9
MOST_DOLLARS = Decimal(1_000_000)
MODEL_LENGTH = 200
# What a row holds of an amount. Servers say smaller ones, too.
_SMALLEST = Decimal("1E-9")


@dataclass(frozen=True, slots=True)
class Prices:
    """What one user pays.

    own: prices that people have set, by (kind of provider, model); they go before every list.
    """

    own: Mapping[tuple[str, str], Price] = field(default_factory=dict)

    def of(self, endpoint: Endpoint, model: str) -> Price | None:
        """Raises: LookupError for an unknown kind."""
        return self.own.get((endpoint.kind, model)) or price_of(model, endpoint.kind, endpoint.base_url)

    def cost(self, endpoint: Endpoint, model: str, usage: Usage) -> Decimal | None:
        """Return what a call of `model` has cost, at most `MOST_DOLLARS`; None when that is not known.

        What the vendor itself says it charged goes before all prices. A reply of another model than the one asked for
        (an alias, a router) is charged at the price that a person has set for either of them, first the one asked for;
        else at the list price of the one that has answered; else at that of the one asked for (case COS-03 c).
        """
        cost = self._cost(endpoint, model, usage)
        return None if cost is None else min(cost, MOST_DOLLARS)

    def _cost(self, endpoint: Endpoint, model: str, usage: Usage) -> Decimal | None:
        if usage.cost is not None:
            return usage.cost
        if usage.input_tokens == usage.output_tokens == 0:
            return Decimal(0)
        if usage.input_tokens is None or usage.output_tokens is None:
            return Decimal(0) if self._is_free(endpoint, model) else None
        price = self._charged(endpoint, model, usage.model)
        return charge(price, usage) if price else None

    def _is_free(self, endpoint: Endpoint, model: str) -> bool:
        """Without a look at the list, which has nothing that is free."""
        own = self.own.get((endpoint.kind, model))
        return is_free(own) if own else kind_of(endpoint.kind).is_free

    def _charged(self, endpoint: Endpoint, model: str, answered: str) -> Price | None:
        if not answered or answered == model:
            return self.of(endpoint, model)
        own = self.own.get((endpoint.kind, model)) or self.own.get((endpoint.kind, answered))
        return own or self.of(endpoint, answered) or self.of(endpoint, model)


def price_of(model: str, kind: str, base_url: str = "") -> Price | None:
    """Return the list price of `model`; None when it is not known.

    A kind of provider that has an address of its own is asked for at that, whatever stands before it; any other server
    by where it is. Raises: LookupError for an unknown kind.
    """
    provider = kind_of(kind)
    if provider.is_free:
        return _FREE
    if provider.free_mark and model.endswith(provider.free_mark):
        return _NOTHING
    address = provider.default_base_url or base_url
    return list_price(model, address) if address else None


def is_free(price: Price) -> bool:
    return not (price.input or price.output or price.cached or price.written or price.longer)


def charge(price: Price, usage: Usage) -> Decimal | None:
    """Return the exact cost of `usage` at `price`. Tokens read from the cache and written to it are part of the input,
    each counted once (case COS-01); never negative.

    None when the tokens are not known, unless they are free anyway.
    """
    if is_free(price):
        return Decimal(0)
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    price = of_length(price, usage.input_tokens)
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    written = min(usage.written_tokens or 0, usage.input_tokens - cached)
    fresh = usage.input_tokens - cached - written
    writing = price.input if price.written is None else price.written
    spent = fresh * price.input + cached * price.cached + written * writing + usage.output_tokens * price.output
    return spent / _MILLION


def of_length(price: Price, tokens: int) -> Price:
    """Return the price of a call with so much input: some vendors charge more for long ones."""
    return next((dearer for start, dearer in reversed(price.longer) if tokens > start), price)


def plausible(usage: Usage) -> Usage:
    """Return `usage` without the figures that no call can have, which are unknown, and with a name of the model that
    a row holds."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.written_tokens)
    known = [count if count is None or count <= MOST_TOKENS else None for count in counts]
    return replace(
        usage,
        input_tokens=known[0],
        output_tokens=known[1],
        cached_tokens=known[2],
        written_tokens=known[3],
        model=clip(usage.model, MODEL_LENGTH),
        cost=None if usage.cost is None else amount(usage.cost),
    )


def amount(said: Decimal) -> Decimal | None:
    """Return an amount as a row holds it; None when no call costs that."""
    if not (said.is_finite() and 0 <= said <= MOST_DOLLARS):
        return None
    return abs(said.quantize(_SMALLEST))


def dollars(amount: Decimal) -> str:
    """Return an amount as a plain decimal: no exponent, no trailing zeros."""
    return f"{amount.normalize():f}"
