"""Rows as events, for whoever has just committed them."""

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from django.utils import timezone

from agents.engine.journal import Cell
from agents.live.events import MessagePosted, RunChanged
from agents.live.stream import publish
from agents.providers.pricing import dollars
from memory.models import AgentRun, Thread, ThreadMessage


def posted(message: ThreadMessage) -> MessagePosted:
    return MessagePosted(
        run=message.run_id,
        message=message.pk,
        source=message.source,
        message_type=message.message_type,
        content=message.content,
        metadata=message.metadata,
        created_at=message.created_at,
    )


def changed(run: AgentRun) -> RunChanged:
    cost = dollars(run.cost) if run.cost_known else None
    return RunChanged(run=run.pk, status=run.status, iterations=run.step, cost=cost)


def cell_posted(run_id: UUID, cell: Cell) -> MessagePosted:
    """A message that a run has just committed."""
    return MessagePosted(
        run=run_id,
        message=cell.id,
        source=cell.source,
        message_type=cell.message_type,
        content=cell.content,
        metadata=cell.metadata,
        created_at=timezone.now(),
    )


def status_changed(run_id: UUID, status: str, step: int = 0, cost: Decimal | None = None) -> RunChanged:
    return RunChanged(run=run_id, status=status, iterations=step, cost=None if cost is None else dollars(cost))


def announce_run(run: AgentRun) -> None:
    publish(run.thread_id, run.thread.user_id, changed(run))


def announce_status(thread: Thread, run_id: UUID, status: str, step: int = 0) -> None:
    publish(thread.pk, thread.user_id, status_changed(run_id, status, step))


def announce_taken(thread: Thread, ids: Sequence[UUID]) -> None:
    """Messages that waited were taken up by the run: they have a new place in the thread."""
    taken = ThreadMessage.objects.filter(pk__in=ids).order_by("position")
    publish(thread.pk, thread.user_id, *map(posted, taken))
