"""Rows as model instances for the hot path: prepared statements, without the query compiler.

The ORM takes four times as long for the same row.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from django.db.models import Model

from memory import pool


def load[M: Model](model: type[M], where: str, parameters: Mapping[str, object]) -> M | None:
    """Return the first row that matches, None when there is none. It must be committed: this is another connection.

    Args:
        where: a constant condition in SQL on the table's alias `x`.
    """
    table = model._meta.db_table
    rows = pool.execute(f"SELECT {columns(model, 'x')} FROM {table} x WHERE {where} LIMIT 1", parameters)  # noqa: S608
    return instance(model, rows[0]) if rows else None


def load_all[M: Model](model: type[M], where: str, parameters: Mapping[str, object]) -> list[M]:
    """Return the rows that match, as `load_joined` sees them.

    Args:
        where: as of `load`; an order may follow.
    """
    sql = f"SELECT {columns(model, 'x')} FROM {model._meta.db_table} x WHERE {where}"  # noqa: S608 (constants)
    return [instance(model, row) for row in pool.execute_on(pool.orm_connection(), sql, parameters)]


def load_joined(sql: str, parameters: Mapping[str, object], *models: type[Model]) -> list[Any]:
    """Return the first row of a SELECT of the `columns` of some models as an instance of each, or nothing.

    It runs on the ORM's connection, so that it sees what an open transaction has written.
    """
    rows = pool.execute_on(pool.orm_connection(), sql, parameters)
    values = iter(rows[0]) if rows else iter(())
    return [instance(model, [*islice(values, width(model))]) for model in models if rows]


@cache
def columns(model: type[Model], alias: str) -> str:
    """Return the columns of a model for a SELECT, in the order that `instance` wants."""
    return ", ".join(f'{alias}."{field.column}"' for field in model._meta.concrete_fields)


def width(model: type[Model]) -> int:
    return len(model._meta.concrete_fields)


def instance[M: Model](model: type[M], values: Sequence[object]) -> M:
    return model.from_db("default", [field.attname for field in model._meta.concrete_fields], values)
