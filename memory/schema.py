"""Whether the database's schema is the one that this program was written for.

A run that new code works on with the old schema fails for no fault of its own. A process that does not fit must not
start: the run then waits for one that does.
"""

from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from memory.pool import DATABASE_AWAY


class SchemaMismatch(Exception):
    """The message says to a person which of the two is behind."""


def require_fit() -> None:
    """Return when the schema fits, or when the database is away and so nobody can do harm.

    Raises:
        SchemaMismatch: it does not.
    """
    try:
        if is_behind(require_known()):
            raise SchemaMismatch("The database is older than this program: migrations are due.")
    except DATABASE_AWAY:
        return
    finally:
        connections.close_all()


def require_known() -> MigrationExecutor:
    """Return what migrates the default database.

    Raises:
        SchemaMismatch: it has been migrated by a later version already.
    """
    executor = MigrationExecutor(connection)
    loader = executor.loader
    later = [key for key in loader.applied_migrations if key[0] in loader.migrated_apps]
    unknown = sorted(f"{app} {name}" for app, name in later if (app, name) not in loader.disk_migrations)
    if unknown:
        raise SchemaMismatch(
            f"The database is newer than this program, which does not know {', '.join(unknown)}. Start the later "
            'version again, or see "Upgrade and going back" in docs/operations.md.'
        )
    return executor


def is_behind(executor: MigrationExecutor) -> bool:
    """Whether there are migrations to be made."""
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
