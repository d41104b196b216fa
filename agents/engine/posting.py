"""A message comes into a thread: committed (D0), shown to whoever looks on, and rung for when a worker must come."""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction

from agents.engine import bell, journal
from agents.engine.journal import AcceptedRow
from agents.live.announce import posted, status_changed
from agents.live.stream import publish
from memory.ids import new_id
from memory.metadata import PLAIN, MessageMetadata
from memory.models import AgentRun, RunStatus, Source, Thread, ThreadMessage, Trigger
from memory.pool import orm_connection


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that is committed, or will be with its transaction. `fresh`: its run was queued for this very one."""

    message: ThreadMessage
    run_id: UUID
    fresh: bool


def post(
    thread: Thread,
    text: str,
    *,
    source: Source = Source.USER,
    trigger: Trigger = Trigger.MESSAGE,
    context_type: str = "",
    metadata: MessageMetadata = PLAIN,
    client_id: UUID | None = None,
    most: int = 0,
    most_waiting: int = 0,
    inside: bool = False,
    message_id: UUID | None = None,
) -> Posted | None:
    """Hand a message over to a thread's agent: to its live run, or to a new one. None: not accepted, see
    `journal.accept`.

    Args:
        trigger, context_type: of the new run, if there is one.
        client_id: the same id is accepted once.
        most, most_waiting: how many of the user's runs may be queued, and how many messages may wait for this agent;
            0 sets no limit.
        message_id: where something that hangs on the message has been written before it.
        inside: it belongs into the transaction that the caller has open, and is told after its commit.

    Raises:
        psycopg.errors.UniqueViolation: the same client id was accepted in this very moment.
    """
    message = ThreadMessage(
        id=message_id or new_id(),
        thread=thread,
        source=source,
        content=text,
        metadata=metadata.stored(),
        processed=False,
        client_message_id=client_id,
    )
    row = journal.accept(
        thread.pk,
        message.pk,
        new_id(),
        text,
        client_id,
        source=source,
        trigger=trigger,
        context_type=context_type,
        metadata=message.metadata,
        most=most,
        most_waiting=most_waiting,
        on=orm_connection() if inside else None,
    )
    if row is None:
        return None
    message.run_id, message.created_at = row.run_id, row.created_at
    if inside:
        transaction.on_commit(partial(_tell, message, row))
    else:
        _tell(message, row)
    return Posted(message, row.run_id, row.fresh)


def _tell(message: ThreadMessage, row: AcceptedRow) -> None:
    thread, rings = message.thread, row.fresh or row.woken
    queued = [status_changed(row.run_id, RunStatus.QUEUED, _step_of(row))] if rings else []
    publish(thread.pk, thread.user_id, posted(message), *queued)
    if rings:
        bell.ring(row.run_id)


def _step_of(row: AcceptedRow) -> int:
    if not row.woken:
        return 0
    return AgentRun.objects.filter(pk=row.run_id).values_list("step", flat=True).first() or 0
