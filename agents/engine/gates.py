"""Calls before their approval and after it: the run lets go while they wait, and starts exactly what was approved."""

from dataclasses import replace
from functools import partial
from uuid import UUID

from django.db import transaction

from agents.engine import journal
from agents.engine.calls import Call
from agents.engine.crashpoints import crashpoint
from agents.engine.journal import Lease, Pulse, WaitAnswer
from agents.engine.record import Record
from memory.pool import orm, orm_connection
from tools.base import ToolContext
from tools.models import ApprovalState
from tools.signature import shown

CHANGED = (
    "What this would change was changed since the user approved it, so it was not executed. Look at it again, and "
    "propose it anew if it is still right."
)


class Parked(Exception):
    """The run has let go until its user decides about a call."""

    def __init__(self, in_line: UUID | None) -> None:
        super().__init__()
        self.in_line = in_line


class GivesWay(Exception):
    """The run ends here, its calls still waiting, because another is to have its thread."""


def start(record: Record, call: Call, context: ToolContext) -> bool:
    """D5 of a call that was recorded as intent: only exactly what was approved, as long as what it would change stands
    as it did then, and only while the run goes on. Returns whether it is; else it is answered with the reason.

    Raises:
        Cancelled: the run was stopped.
    """
    lease = record.lease
    record.held.check()
    if call.gate is not None and call.attempt.tool is not None:
        _, _, seen = journal.decision(call.attempt.action_id)
        with orm():
            expected = call.attempt.expected(context) if seen else None
        if seen and seen != shown(call.digest, expected):
            call.result = call.attempt.denied(CHANGED)
            return False
    call.started, pulse = journal.start(lease, call.attempt.action_id, call.digest)
    record.heed(pulse)
    record.held.check()
    if call.started:
        record.announce_calls((), [call])
    else:
        call.result = call.attempt.denied("This call is not what was approved; it was not executed.")
    return call.started


def wait(record: Record) -> None:
    """D4: let go of the run until the user decides, unless something came meanwhile: then take in what was decided,
    and answer the rest as proposed when a message wants to be heard or the run is to give way.

    Raises:
        Parked: the run is nobody's now.
        Cancelled: the run was stopped.
    """
    record.outcomes([call for call in record.unrecorded if call.result])
    crashpoint("D4.before")
    lease = record.lease
    answer = journal.surely(partial(_let_go, lease), partial(journal.waits_for_approval, lease))
    crashpoint("D4.after")
    if answer.waits:
        raise Parked(answer.in_line)
    record.heed(Pulse(answer.cancelling, answer.pending, record.progress.metered))
    record.held.check()
    for call in record.calls:
        _look_up(call)
        if call.waits and (answer.pending or answer.gives_way):
            call.propose()
            record.gives_way = answer.gives_way


def _let_go(lease: Lease) -> WaitAnswer:
    with orm(), transaction.atomic():
        return journal.wait_for_approval(lease, orm_connection())


def _look_up(call: Call) -> None:
    """What was decided about a call meanwhile."""
    if call.waits and call.gate is not None:
        state, reason, _seen = journal.decision(call.attempt.action_id)
        call.gate = replace(call.gate, state=ApprovalState(state), reason=reason)
