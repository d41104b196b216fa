"""Lists, one page at a time: {results, next}.

A page starts after the last row of the one before, found by that row's own key, so rows that come or go in between
neither repeat nor hide others.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError as BadValue
from django.db.models import Field, Model, Q, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Order:
    """By which fields a list is sorted. Together they must be unique; a row whose key grows may show up twice."""

    fields: tuple[str, ...]
    descending: bool

    def sort[M: Model](self, rows: QuerySet[M]) -> QuerySet[M]:
        return rows.order_by(*(f"-{name}" if self.descending else name for name in self.fields))

    def beyond[M: Model](self, rows: QuerySet[M], key: list[Any]) -> QuerySet[M]:
        """Keep the rows that come after the one with this key."""
        step = "lt" if self.descending else "gt"
        later = Q()
        for index, name in enumerate(self.fields):
            same = dict(zip(self.fields[:index], key, strict=False))
            later |= Q(**same, **{f"{name}__{step}": key[index]})
        return rows.filter(later)

    def key(self, row: Model) -> list[Any]:
        return [getattr(row, name) for name in self.fields]

    def parse(self, model: type[Model], values: Any) -> list[Any]:
        """
        Raises:
            ValueError: the values are no key of this order.
        """
        if not isinstance(values, list) or len(values) != len(self.fields) or None in values:
            raise ValueError("not a key of this list")
        try:
            pairs = zip(self.fields, values, strict=True)
            return [_column(model, name).to_python(value) for name, value in pairs]
        except (BadValue, OverflowError) as problem:
            raise ValueError("not a key of this list") from problem


def _column(model: type[Model], name: str) -> Field[Any, Any]:
    column = model._meta.pk if name == "pk" else model._meta.get_field(name)
    assert isinstance(column, Field)
    return column


NEWEST_FIRST = Order(("id",), descending=True)  # ids are time-ordered


def page[M: Model](
    request: Request, rows: QuerySet[M], order: Order, represent: Callable[[M], Mapping[str, object]]
) -> Response:
    """Answer the page that `?limit=` and `?cursor=` ask for.

    Raises:
        ValidationError: for a limit or cursor that is not one.
    """
    limit = _limit(request)
    if cursor := request.query_params.get("cursor"):
        rows = order.beyond(rows, _decoded(order, rows.model, cursor))
    found = list(order.sort(rows)[: limit + 1])
    more = _link(request, order.key(found[limit - 1])) if len(found) > limit else None
    return Response({"results": [represent(row) for row in found[:limit]], "next": more})


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if len(given) <= 9 and given.isascii() and given.isdigit() and 1 <= int(given) <= MAX_LIMIT:
        return int(given)
    raise ValidationError({"limit": [f"A whole number from 1 to {MAX_LIMIT}."]})


def _link(request: Request, key: list[Any]) -> str:
    cursor = base64.urlsafe_b64encode(json.dumps(key, default=str).encode()).decode().rstrip("=")
    return f"{request.path}?{urlencode({**request.query_params.dict(), 'cursor': cursor})}"


def _decoded(order: Order, model: type[Model], cursor: str) -> list[Any]:
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return order.parse(model, values)
    except (ValueError, binascii.Error, RecursionError) as problem:
        raise ValidationError({"cursor": ["Not a cursor of this list."]}) from problem
