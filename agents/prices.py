"""Prices that people set themselves, which go before every list: for one user, or by staff for all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from agents.engine.waits import end_waits_for_budgets
from agents.model_connection import model_name
from agents.models import ModelConnection, ModelPrice
from agents.providers.base import Endpoint, Price
from agents.providers.catalog import kind_of, known_kinds
from agents.providers.pricing import Prices
from agents.refusals import Refused
from memory import pool

# Of one user; each run reads them.
MOST_PRICES = 200
FINEST = Decimal("0.000001")
MODEL_LENGTH = 200

# As text, because figures of JSON are read as floats. Those for all come first, so that one's own replace them.
PRICES = """(
  SELECT coalesce(jsonb_agg(jsonb_build_array(p.kind, p.model, p.input::text, p.output::text, p.cached::text,
    p.written::text, p.user_id IS NOT NULL, p.changed_at::date) ORDER BY p.user_id NULLS FIRST), '[]')
  FROM agents_modelprice p WHERE p.user_id = {user} OR p.user_id IS NULL)"""


def read(rows: Iterable[Sequence[Any]]) -> Prices:
    """Return what PRICES has found."""
    return Prices({(kind, model): _price(*figures) for kind, model, *figures in rows})


def prices_of(user_id: int) -> Prices:
    """What a user pays, for what is charged beside the runs."""
    rows = pool.execute(f"SELECT {PRICES.format(user='%(user)s')}", {"user": user_id})
    return read(rows[0][0])


def _price(fresh: str, output: str, cached: str | None, written: str | None, own: bool, date: str) -> Price:
    source = "Set by you." if own else "Set for this server."
    first = Decimal(fresh)
    return Price(
        first,
        Decimal(output),
        first if cached is None else Decimal(cached),
        source,
        date,
        None if written is None else Decimal(written),
    )


def amount(text: object) -> Decimal | None:
    """Read a price as people and programs write it: `0.10`, `"1e-6"`, a number of JSON (case COS-02 e). None is none.

    Raises:
        Refused: it is no price, or one that does not fit.
    """
    if text is None or text == "":
        return None
    try:
        figure = Decimal(str(text).strip().removeprefix("$")) if not isinstance(text, bool) else None
    except InvalidOperation:
        figure = None
    if figure is None or not figure.is_finite() or not 0 <= figure <= ModelPrice.DEAREST:
        raise Refused("invalid_price", _("A price is an amount of dollars per million tokens, from 0 to 100,000."))
    if figure != figure.quantize(FINEST):
        raise Refused("invalid_price", _("A price may have six digits after the point."))
    return figure.quantize(FINEST)


def set_price(
    user: User,
    kind: str,
    model: str,
    *,
    input: object,  # noqa: A002 (as everywhere)
    output: object,
    cached: object = None,
    written: object = None,
) -> ModelPrice:
    """Set what a model costs this user from the next run on; what was charged before stays as it is (case COS-03 f).

    Raises:
        Refused: with words for the user.
    """
    fresh, out = amount(input), amount(output)
    if fresh is None or out is None:
        raise Refused("invalid_price", _("Input and output both need a price. What costs nothing costs 0."))
    if kind not in {known.kind for known in known_kinds()}:
        raise Refused("invalid_price", _("There is no such kind of provider."))
    model = model.strip()
    if not (0 < len(model) <= MODEL_LENGTH and model.isprintable()):
        raise Refused("invalid_price", _("Which model is it?"))
    figures = {"input": fresh, "output": out, "cached": amount(cached), "written": amount(written)}
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        mine = ModelPrice.objects.for_user(user)
        if mine.count() >= MOST_PRICES and not mine.filter(kind=kind, model=model).exists():
            raise Refused("too_many_prices", _("You have set as many prices as one may. Remove one first."))
        price, _made = ModelPrice.objects.update_or_create(user=user, kind=kind, model=model, defaults=figures)
    end_waits_for_budgets(user)
    return price


@dataclass(frozen=True, slots=True)
class Shown:
    """The price of one model as people see it. None: not known. own: the row that they may remove."""

    kind: str
    model: str
    price: Price | None
    own: ModelPrice | None

    def __str__(self) -> str:
        return model_name(self.kind, self.model)


def shown_prices(user: User) -> list[Shown]:
    """Every price that the user has set, then those of the other models that the user has connected."""
    prices, mine = prices_of(user.pk), list(ModelPrice.objects.for_user(user))
    found = {(row.kind, row.model): Shown(row.kind, row.model, _of_row(row), row) for row in mine}
    for connection in ModelConnection.objects.for_user(user):
        kind, model = connection.kind, connection.model
        if not kind_of(kind).is_scripted and (kind, model) not in found:
            price = prices.of(Endpoint(kind, connection.base_url), model)
            found[kind, model] = Shown(kind, model, price, None)
    return list(found.values())


def having_price(user: User, shown: Iterable[Shown], models: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of some models, as (kind, model), those of which the next call has a price, wherever the user may have connected
    them. `shown`: as `shown_prices` says."""
    prices, known = prices_of(user.pk), {(each.kind, each.model) for each in shown if each.price}
    return {each for each in models if each in known or prices.of(Endpoint(each[0]), each[1]) is not None}


def _of_row(row: ModelPrice) -> Price:
    cached, written = (None if figure is None else str(figure) for figure in (row.cached, row.written))
    return _price(str(row.input), str(row.output), cached, written, own=True, date=str(row.changed_at.date()))


def remove_price(price: ModelPrice) -> None:
    """The list price holds again from the next run on."""
    price.delete()
    if price.user is not None:
        end_waits_for_budgets(price.user)
