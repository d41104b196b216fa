"""What a run writes down as it goes, and shows to those who look on."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import transaction
from psycopg import Connection

from agents.engine import journal
from agents.engine.assemble import Summons
from agents.engine.calls import Call
from agents.engine.cells import said_cells, tool_cell
from agents.engine.journal import Cell, Lease, NextCall, Progress, Pulse
from agents.engine.leases import Held
from agents.engine.notices import write
from agents.live.announce import announce_action, announce_progress, announce_taken, call_changed, cell_posted
from agents.live.events import Event, MessagePosted
from agents.live.stream import publish
from memory import marks
from memory.messages import Message
from memory.pool import orm, orm_connection
from tools.attempts import Attempt, Result
from tools.base import HowFar
from tools.cancel import BY_USER
from tools.models import ActionStatus


@dataclass(slots=True)
class Record:
    """The journal of one run, and its executor's `Recorder`.

    calls: those that are being answered.
    pending: whether messages wait for the run.
    has_next_call: whether the model call that follows the current calls was started with the last of them (D7).
    spoken: whether the current step has said something to the user before this worker took it up.
    gives_way: whether the run ends with this step, for another (`gates.GivesWay`).
    """

    summons: Summons
    held: Held
    calls: list[Call] = field(default_factory=list)
    pending: bool = False
    has_next_call: bool = False
    spoken: bool = False
    gives_way: bool = False

    @property
    def lease(self) -> Lease:
        return self.held.lease

    @property
    def progress(self) -> Progress:
        return self.held.progress

    @property
    def unrecorded(self) -> list[Call]:
        return [call for call in self.calls if not call.recorded]

    @property
    def has_said(self) -> bool:
        """Whether a call of this reply has spoken to the user; a conversational run ends after it."""
        return self.spoken or any(call.result.said is not None for call in self.calls if call.result)

    def begin(self, calls: list[Call]) -> None:
        """The calls of a new reply."""
        self.calls, self.has_next_call, self.spoken = calls, False, False

    def is_last(self, call: Call) -> bool:
        """Whether this outcome is the only one of its step that is not recorded."""
        return not call.detached and all(other.recorded for other in self.calls if other is not call)

    def may_start(self) -> None:
        self.held.check()

    def local(self, attempt: Attempt, effect: Callable[[], Result]) -> Result:
        """Effect, audit row and result in one transaction (invariant I7). After the last call of a reply the next
        model call starts in the same commit, unless the run ends there."""
        call = next(each for each in self.calls if each.attempt is attempt)
        progress = self.progress
        before = progress.step, progress.call_id

        def act() -> Pulse:
            progress.step, progress.call_id = before
            return self._in_one_transaction(call, effect)

        pulse = journal.surely(act, partial(journal.outcome_landed, self.lease, attempt.action_id))
        call.recorded = True
        self.has_next_call = progress.step > before[0]
        assert call.result is not None
        self.announce(self._changed(call), *self._posted(said_cells([call.result])))
        if call.result.touched:
            with orm():
                for action_id in call.result.touched:
                    announce_action(self.summons.thread, action_id)
        self.heed(pulse)
        return call.result

    def progressed(self, attempt: Attempt, progress: HowFar) -> None:
        """Show how far a call is; nothing of it is kept."""
        call = next((each for each in self.calls if each.attempt is attempt), None)
        if call is not None and not call.recorded:
            announce_progress(self.summons.thread, self.lease.run_id, call, progress)

    def outcomes(self, calls: Sequence[Call], next_call: NextCall | None = None) -> None:
        """D6 of these calls; with D7 + D2 when a model call follows."""
        if not calls and next_call is None:
            return
        self._mark(calls)
        said = said_cells([call.result for call in calls if call.result])
        entries = {call.place: call.message for call in calls}
        pulse = journal.outcome(self.lease, [call.outcome for call in calls], entries, said, next_call)
        for call in calls:
            call.recorded = True
        self.announce(*map(self._changed, calls), *self._posted(said))
        self.heed(pulse)

    def noted(self, call: Call, result: Result) -> Result:
        """Let the guard see what a call came to; it may add a warning to what the model reads."""
        if call.detached:
            return result
        failed = result.status is ActionStatus.ERROR
        warning = self.progress.guard.note(call.attempt.position, result.observation, failed=failed)
        return dataclasses.replace(result, observation=f"{result.observation}\n{warning}") if warning else result

    def take_messages(self) -> list[Message]:
        """The messages that wait, as history. What stands in the context the model was told when the run was claimed,
        unless its step was open then and took none."""
        self.pending = False
        taken, ids = journal.take_messages(self.lease, self.summons.context if self.progress.open_step else None)
        self.progress.open_step = False
        with orm():
            announce_taken(self.summons.thread, ids)
        return taken

    def show(self, calls: Sequence[Call]) -> None:
        """Give calls that were not in a reply a cell in the thread."""
        cells = [tool_cell(call.cell, call.attempt.action_id) for call in calls]
        with orm():
            write(self.lease.thread_id, self.lease.run_id, cells)
        self.announce(*self._posted(cells))

    def heed(self, pulse: Pulse) -> None:
        """Take in what a durable point brought back."""
        if pulse.cancelling:
            self.held.cancel.cancel(BY_USER)
        self.pending, self.progress.metered = pulse.pending, pulse.metered

    def announce(self, *events: Event) -> None:
        publish(self.summons.thread.pk, self.summons.thread.user_id, *events)

    def announce_calls(self, cells: Sequence[Cell], calls: Sequence[Call]) -> None:
        """What was said beside calls, and how these stand."""
        self.announce(*self._posted(cells), *map(self._changed, calls))

    def _in_one_transaction(self, call: Call, effect: Callable[[], Result]) -> Pulse:
        assert call.attempt.tool is not None
        with self.held.within(call.attempt.tool.timeout_seconds), orm(), transaction.atomic():
            call.result = self.noted(call, effect())
            self._mark([call], orm_connection())
            ends = self.gives_way or (self.has_said and self.summons.converses)
            return journal.outcome(
                self.lease,
                [call.outcome],
                {call.place: call.message},
                said_cells([call.result]),
                self.summons.next_call if self.is_last(call) and not ends else None,
                on=orm_connection(),
            )

    def _mark(self, calls: Sequence[Call], on: Connection[Any] | None = None) -> None:
        """Before what strangers have written becomes history: lost between the two, the mark alone does no harm."""
        found = [source for call in calls if call.result for source in call.result.sources]
        if names := marks.names(found):  # also those that are known: their user may have vouched for them meanwhile
            marks.mark(self.lease.thread_id, names, on, self.summons.above)
            self.progress.sources.extend(name for name in names if name not in self.progress.sources)

    def _posted(self, cells: Sequence[Cell]) -> list[MessagePosted]:
        return [cell_posted(self.lease.run_id, cell) for cell in cells]

    def _changed(self, call: Call) -> Event:
        return call_changed(self.lease.run_id, call)
