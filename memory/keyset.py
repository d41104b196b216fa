"""Pages of a sorted list: each starts after the last row of the one before, found by that row's own key, so rows that
come or go in between neither repeat nor hide others."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError as BadValue
from django.db.models import Field, Model, Q, QuerySet


class NoCursor(ValueError):
    """Not a cursor of this list."""


@dataclass(frozen=True, slots=True)
class Order:
    """By which fields a list is sorted. Together they must be unique; a row whose key grows may show up twice."""

    fields: tuple[str, ...]
    descending: bool

    def sort[R: QuerySet[Any]](self, rows: R) -> R:
        return rows.order_by(*(f"-{name}" if self.descending else name for name in self.fields))

    def beyond[R: QuerySet[Any]](self, rows: R, key: list[Any]) -> R:
        """Keep the rows that come after the one with this key."""
        step = "lt" if self.descending else "gt"
        later = Q()
        for index, name in enumerate(self.fields):
            same = dict(zip(self.fields[:index], key, strict=False))
            later |= Q(**same, **{f"{name}__{step}": key[index]})
        # Says nothing new, but an index can begin there.
        return rows.filter(later, **{f"{self.fields[0]}__{step}e": key[0]})

    def key(self, row: Model) -> list[Any]:
        return [getattr(row, name) for name in self.fields]

    def cursor(self, row: Model) -> str:
        """The place of a row, for an address."""
        return base64.urlsafe_b64encode(json.dumps(self.key(row), default=str).encode()).decode().rstrip("=")

    def after[R: QuerySet[Any]](self, rows: R, cursor: str) -> R:
        """Keep the rows that come after that of a cursor.

        Raises:
            NoCursor: it is none of this list.
        """
        try:
            values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
            if not isinstance(values, list) or len(values) != len(self.fields) or None in values:
                raise NoCursor
            key = [_column(rows.model, name).to_python(each) for name, each in zip(self.fields, values, strict=True)]
        except (ValueError, binascii.Error, RecursionError, BadValue, OverflowError) as problem:
            raise NoCursor from problem
        return self.beyond(rows, key)


def _column(model: type[Model], name: str) -> Field[Any, Any]:
    column = model._meta.pk if name == "pk" else model._meta.get_field(name)
    assert isinstance(column, Field)
    return column
