"""The database is emptied after each test that commits.

Django's own way, `flush`, truncates every table, also the empty ones, and then makes all permissions anew: a fifth of a
second, longer than most tests take.
"""

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test import TransactionTestCase

# What migrations fill, and nothing changes later.
KEPT = {"django_migrations", "django_content_type", "auth_permission"}


def use(patch: pytest.MonkeyPatch) -> None:
    """Let tests that commit end so."""
    patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())


def empty() -> None:
    """Delete all rows. As with TRUNCATE, whoever still writes is waited for; foreign keys are checked at the end."""
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    tables = [connection.ops.quote_name(name) for name in sorted({model._meta.db_table for model in models} - KEPT)]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE")
        cursor.execute("; ".join(f"DELETE FROM {name}" for name in tables))
