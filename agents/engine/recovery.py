"""What a run finds open when it is claimed again: calls of a worker that died, and calls that were decided meanwhile.

By the effect of the tool (docs/reliability.md): a call that was only intended starts now, if what it waited for was
approved; pure, idempotent and local ones run again (the same id is the key; a local effect without an outcome was
rolled back); a verifiable one is looked up; any other has an unknown outcome, and the user is asked.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from agents.engine.calls import Call, Gate
from agents.engine.steps import Steps
from memory import pool
from memory.ids import new_id
from memory.messages import Message, ToolUse
from memory.models import GAVE_WAY
from memory.transcript import Transcript
from tools.attempts import Attempt, Result
from tools.base import UNCERTAIN, Effect
from tools.models import OPEN, ActionStatus, ApprovalState, Cause
from tools.probing import look_up
from tools.signature import digest

ROWS = """
SELECT a.id, a.position, a.call_id, a.tool, a.effect, a.arguments, a.status,
  coalesce(nullif(a.output, ''), a.error), a.summary, a.started_at, m.id, p.cause, p.state, p.reason
FROM agent_actions a LEFT JOIN tools_approval p ON p.action_id = a.id
LEFT JOIN memory_threadmessage m ON m.thread_id = a.thread_id AND m.message_type = 'tool'
  AND m.metadata ->> 'action' = a.id::text
"""

OPEN_STEP = ROWS + "WHERE a.run_id = %(run)s AND a.step = %(step)s AND a.repeats_id IS NULL ORDER BY a.position"

# Decided about after their reply had been answered, or while it was; `started` ones were being carried out when their
# worker died.
DECIDED = (
    ROWS
    + """
WHERE a.thread_id = %(thread)s AND p.thread_id = %(thread)s AND (
  a.status = 'proposed' AND (p.state = 'rejected' OR p.state = 'approved' AND p.expires_at > clock_timestamp())
  OR a.status = 'started' AND p.state = 'approved'
    AND NOT (a.run_id = %(run)s AND a.step = %(step)s AND a.repeats_id IS NULL))
ORDER BY p.decided_at"""
)

UNKNOWN = "SELECT tool, arguments FROM agent_actions WHERE run_id = %(run)s AND status = 'unknown'"

# What its step has done before this worker took it up: spoken to its user, begun to give way.
SAID_OR_GIVEN = f"""
SELECT EXISTS (
  SELECT FROM memory_threadmessage m JOIN agent_actions a ON a.run_id = m.run_id AND a.step = %(step)s
  WHERE m.run_id = %(run)s AND m.thread_id = %(thread)s AND m.source = 'agent' AND m.message_type = 'text'
    AND NOT m.metadata ?| ARRAY['interim', 'task', 'schedule'] AND m.created_at >= a.created_at),
  EXISTS (
  SELECT FROM memory_agentrun run JOIN agent_actions a ON a.run_id = run.id AND a.step = %(step)s
  WHERE run.id = %(run)s AND run.reason = '{GAVE_WAY}' AND a.status = 'proposed' AND a.repeats_id IS NULL)
"""  # noqa: S608 (a constant)


class RecordedCall(NamedTuple):
    """A recorded call as it stands."""

    id: UUID
    position: int
    call_id: str
    tool: str
    effect: str
    arguments: dict[str, Any]
    status: str
    text: str
    summary: str
    started_at: datetime | None
    cell: UUID | None
    cause: str | None
    state: str | None
    reason: str | None

    @property
    def gate(self) -> Gate | None:
        if self.cause is None or self.state is None:
            return None
        return Gate(Cause(self.cause), state=ApprovalState(self.state), reason=self.reason or "")

    @classmethod
    def read(cls, sql: str, parameters: Mapping[str, object]) -> list["RecordedCall"]:
        return [cls(*row) for row in pool.execute(sql, parameters)]


def recover(steps: Steps, history: Transcript) -> tuple[ToolUse, ...]:
    """Take up what is open: calls of the run's step go to `steps`, which the loop lets it answer before it thinks;
    what was decided about older ones is carried out, and told in the history.

    Returns:
        The calls of the open step, none when the model is to be called.

    Raises:
        Cancelled: the run was stopped.
    """
    lease, progress = steps.held.lease, steps.held.progress
    steps.unknown = {digest(tool, arguments) for tool, arguments in pool.execute(UNKNOWN, {"run": lease.run_id})}
    if not progress.open_step:
        history.messages.extend(carry_out_decided(steps))
        return ()
    where = {"run": lease.run_id, "step": progress.step, "thread": lease.thread_id}
    reply = history.messages[-1]
    calls = dict(enumerate(reply.calls))
    steps.record.calls = [
        _taken_up(steps, row, calls[row.position], history.reply_seq + 1 + row.position)
        for row in RecordedCall.read(OPEN_STEP, where)
    ]
    steps.record.spoken, steps.record.gives_way = pool.execute(SAID_OR_GIVEN, where)[0]
    return reply.calls


def inbox(steps: Steps) -> list[Message]:
    """The messages that came while the run was busy. One of them may be a decision: what it is about is carried out,
    and told behind them."""
    taken = steps.inbox()
    return [*taken, *carry_out_decided(steps)] if taken else []


def carry_out_decided(steps: Steps) -> list[Message]:
    """Carry out what was approved about calls of earlier steps; returns what the model is told of it."""
    lease, progress = steps.held.lease, steps.held.progress
    rows = RecordedCall.read(DECIDED, {"run": lease.run_id, "step": progress.step, "thread": lease.thread_id})
    calls = []
    for place, row in enumerate(rows, start=progress.next_seq):
        call = ToolUse(id=row.call_id, name=row.tool, arguments=row.arguments)
        calls.append(_taken_up(steps, row, call, place, detached=True))
    progress.next_seq += len(calls)
    steps.record.show([call for call, row in zip(calls, rows, strict=True) if row.cell is None])
    return steps.carry_out(calls) if calls else []


def _taken_up(steps: Steps, row: RecordedCall, use: ToolUse, place: int, *, detached: bool = False) -> Call:
    attempt = steps.executor.validate(use, row.position, row.id)
    call = Call(attempt, row.cell or new_id(), place, row.gate, started_at=row.started_at, detached=detached)
    call.started = row.status == ActionStatus.STARTED
    if not detached:
        steps.watch(call)
    if row.status not in OPEN and not (detached and row.status == ActionStatus.PROPOSED):
        call.result, call.recorded = Result(attempt, ActionStatus(row.status), row.text, row.summary), True
        steps.record.noted(call, call.result)
    elif call.result is None and call.started and row.effect in UNCERTAIN:
        call.result = _looked_up(steps, row, attempt)
        steps.unknown |= {call.digest} if call.result and call.result.status is ActionStatus.UNKNOWN else set()
    steps.permit(call)
    if row.status in OPEN and not detached and call.gate is None and call.result is None:
        steps.ask_again(call)
    return call


def _looked_up(steps: Steps, row: RecordedCall, attempt: Attempt) -> Result | None:
    """None: it certainly did not happen, so it may run again."""
    if row.effect == Effect.VERIFIABLE and not attempt.problem:
        return look_up(attempt, partial(steps.executor.context, attempt), steps.held.cancel)
    at = f"{row.started_at:%H:%M:%S} UTC" if row.started_at else "an unknown time"
    return attempt.unknown(f"it was started at {at}, and no result was recorded")
