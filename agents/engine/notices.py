"""Messages of a run that the journal does not write."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction

from agents.engine.journal import Cell
from memory.models import Thread, ThreadMessage


def write(thread_id: UUID, run_id: UUID, cells: Sequence[Cell]) -> list[ThreadMessage]:
    """Add messages of a run to its thread; those that are there already are left out. Returns the new ones, which the
    caller announces after the commit.

    Raises:
        Thread.DoesNotExist: it was deleted.
    """
    with locked(thread_id):
        known = set(ThreadMessage.objects.filter(pk__in=[cell.id for cell in cells]).values_list("pk", flat=True))
        rows = [dataclasses.asdict(cell) for cell in cells if cell.id not in known]
        return [ThreadMessage.objects.create(thread_id=thread_id, run_id=run_id, **row) for row in rows]


@contextmanager
def locked(thread_id: UUID) -> Iterator[None]:
    """A transaction that has locked a thread before anything else, as everybody does: an INSERT would lock the run and
    then wait for the thread, which a deletion holds while it waits for the run."""
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=thread_id)
        yield
