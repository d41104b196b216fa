"""Lists, one page at a time: {results, next}."""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from memory.keyset import NoCursor, Order

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


NEWEST_FIRST = Order(("id",), descending=True)  # ids are time-ordered


def page[M: Model](
    request: Request, rows: QuerySet[M], order: Order, represent: Callable[[M], Mapping[str, object]]
) -> Response:
    """Answer the page that `?limit=` and `?cursor=` ask for.

    Raises:
        ValidationError: for a limit or cursor that is not one.
    """
    limit = limit_of(request)
    if cursor := request.query_params.get("cursor"):
        rows = _after(order, rows, cursor)
    found = list(order.sort(rows)[: limit + 1])
    more = link_to(request, order.cursor(found[limit - 1])) if len(found) > limit else None
    return Response({"results": [represent(row) for row in found[:limit]], "next": more})


def limit_of(request: Request) -> int:
    """How many are asked for. Raises: ValidationError."""
    given = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if len(given) <= 9 and given.isascii() and given.isdigit() and 1 <= int(given) <= MAX_LIMIT:
        return int(given)
    raise ValidationError({"limit": [f"A whole number from 1 to {MAX_LIMIT}."]})


def link_to(request: Request, cursor: str) -> str:
    """The address of the page that follows."""
    return f"{request.path}?{urlencode({**request.query_params.dict(), 'cursor': cursor})}"


def _after[M: Model](order: Order, rows: QuerySet[M], cursor: str) -> QuerySet[M]:
    try:
        return order.after(rows, cursor)
    except NoCursor as problem:
        raise ValidationError({"cursor": ["Not a cursor of this list."]}) from problem
