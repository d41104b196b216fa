"""Rows as model instances for the hot path: prepared statements on its own connections, without the query compiler.

The ORM takes four times as long for the same row. What is read must be committed: this is another connection.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from django.db.models import Model

from memory import pool


def load[M: Model](model: type[M], where: str, parameters: Mapping[str, object]) -> M | None:
    """Return the first row that matches, None when there is none.

    Args:
        where: a constant condition in SQL on the table's alias `x`.
    """
    table = model._meta.db_table
    rows = pool.execute(f"SELECT {columns(model, 'x')} FROM {table} x WHERE {where} LIMIT 1", parameters)  # noqa: S608
    return instance(model, rows[0]) if rows else None


@cache
def columns(model: type[Model], alias: str) -> str:
    """Return the columns of a model for a SELECT, in the order that `instance` wants."""
    return ", ".join(f'{alias}."{field.column}"' for field in model._meta.concrete_fields)


def width(model: type[Model]) -> int:
    return len(model._meta.concrete_fields)


def instance[M: Model](model: type[M], values: Sequence[object]) -> M:
    return model.from_db("default", [field.attname for field in model._meta.concrete_fields], values)
