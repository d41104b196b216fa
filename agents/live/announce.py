"""Rows as events, for whoever has just committed them."""

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from django.utils import timezone

from agents.engine.calls import Call
from agents.engine.journal import Cell
from agents.live import how_far
from agents.live.events import ApprovalChanged, Event, MessagePosted, RunChanged, ToolComplete, ToolProgress, ToolStart
from agents.live.stream import publish
from agents.models import AgentTask
from agents.providers.pricing import dollars
from memory.models import AgentRun, Thread, ThreadMessage
from tools.base import HowFar
from tools.models import ActionStatus, AgentAction, ApprovalState


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


def status_changed(
    run_id: UUID, status: str, step: int = 0, cost: Decimal | None = None, pause: float | None = None
) -> RunChanged:
    spent = None if cost is None else dollars(cost)
    return RunChanged(run=run_id, status=status, iterations=step, cost=spent, pause=pause)


def announce_run(run: AgentRun) -> None:
    publish(run.thread_id, run.thread.user_id, changed(run))


def announce_status(thread: Thread, run_id: UUID, status: str, step: int = 0) -> None:
    publish(thread.pk, thread.user_id, status_changed(run_id, status, step))


def announce_progress(thread: Thread, run_id: UUID, call: Call, progress: HowFar) -> None:
    """How far a call is that is under way."""
    attempt = call.attempt
    how_far.note(attempt.action_id, progress)
    event = ToolProgress(
        run=run_id,
        message=call.cell,
        action=attempt.action_id,
        tool=attempt.call.name,
        done=progress.done,
        total=progress.total,
        words=progress.words,
    )
    publish(thread.pk, thread.user_id, event)


def announce_message(message: ThreadMessage, user_id: int) -> None:
    publish(message.thread_id, user_id, posted(message))


def announce_action(thread: Thread, action_id: UUID) -> None:
    """How a call stands in the database, after something was decided about it."""
    action = AgentAction.objects.select_related("approval").get(pk=action_id)
    cell = ThreadMessage.objects.filter(thread=thread, metadata__action=str(action_id)).first()
    if cell is None:
        return
    about = {"run": action.run_id, "message": cell.pk, "action": action.pk, "tool": action.tool}
    approval = getattr(action, "approval", None)
    if approval is not None and action.status in (ActionStatus.INTENT, ActionStatus.PROPOSED):
        event: Event = ApprovalChanged(**about, state=approval.state, digest=approval.digest)
    else:
        event = ToolComplete(**about, status=action.status, summary=action.summary, undone=action.undone)
    publish(thread.pk, thread.user_id, event)


def announce_sender(task_id: UUID) -> None:
    """How the call stands that sent a helper off: one that is over is not called back any more."""
    senders = AgentTask.objects.filter(pk=task_id).values("sent_by")
    sent = AgentAction.objects.filter(run__in=senders, undo__changes__0__id=str(task_id))
    for action in sent.select_related("thread"):
        announce_action(action.thread, action.pk)


def call_changed(run_id: UUID, call: Call) -> Event:
    """How a tool call stands: asked for, started, or ended."""
    attempt = call.attempt
    action, tool = attempt.action_id, attempt.call.name
    if call.waits:
        state = ApprovalState.REQUESTED
        return ApprovalChanged(run=run_id, message=call.cell, action=action, tool=tool, state=state, digest=call.digest)
    if call.result is None:
        return ToolStart(run=run_id, message=call.cell, action=action, tool=tool, arguments=attempt.call.arguments)
    status, summary = call.result.status, call.result.summary
    return ToolComplete(run=run_id, message=call.cell, action=action, tool=tool, status=status, summary=summary)


def announce_taken(thread: Thread, ids: Sequence[UUID]) -> None:
    """Messages that waited were taken up by the run: they have a new place in the thread."""
    taken = ThreadMessage.objects.filter(pk__in=ids).order_by("position")
    publish(thread.pk, thread.user_id, *map(posted, taken))
