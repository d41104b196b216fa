"""Migrations, only when there are any: looking costs a fifth of what `migrate` with nothing to do costs."""

import sys

from django.core.management import call_command

from memory.schema import SchemaMismatch, is_behind, require_known


def migrate_if_needed() -> None:
    """Bring the default database up to date. Leaves the program when that is of a later version."""
    try:
        executor = require_known()
    except SchemaMismatch as mismatch:
        sys.exit(str(mismatch))
    if is_behind(executor):
        call_command("migrate", interactive=False, verbosity=1)
