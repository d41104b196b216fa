"""One step after another of a run: what the model replied and what its calls came to, recorded and announced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from django.db import transaction

from agents.engine import journal
from agents.engine.assemble import Summons
from agents.engine.cells import interim_cells, said_cells, tool_cell
from agents.engine.journal import ActionOutcome, ActionStart, Cell, NextCall, Pulse
from agents.engine.leases import Held
from agents.engine.thinking import NOTHING_CALLED, Thinker
from agents.live.announce import announce_taken, cell_posted
from agents.live.events import Event, MessagePosted, ToolComplete, ToolStart
from agents.live.stream import publish
from agents.providers.base import Reply
from memory.ids import new_id
from memory.messages import Message, ToolUse
from memory.pool import orm, orm_connection
from tools.cancel import Cancelled
from tools.executor import Attempt, Executor, Result
from tools.models import ActionStatus


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of one reply's calls, in order."""

    results: Sequence[Result]

    @property
    def messages(self) -> list[Message]:
        return [result.message for result in self.results]

    @property
    def said(self) -> bool:
        return any(result.said is not None for result in self.results)


@dataclass(slots=True)
class Call:
    """One call of the current reply: its cell in the thread, its place in the history, and what became of it."""

    attempt: Attempt
    cell: UUID
    place: int
    result: Result | None = None
    recorded: bool = False


@dataclass
class Steps:
    """
    last_reply: the reply that ended the run, once there is one.
    finished: the results so far, for the words that a stopped run leaves.
    has_next_call: whether the model call that follows the current calls was started with the last of them.
    """

    summons: Summons
    held: Held
    thinker: Thinker
    last_reply: Reply | None = None
    finished: list[Result] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    pending: bool = False
    has_next_call: bool = False

    @cached_property
    def executor(self) -> Executor:
        lease = self.held.lease
        return Executor(self.summons.tools, lease.user_id, lease.thread_id, lease.run_id, self.held.cancel, self)

    def replied(self, reply: Reply) -> None:
        """D3 + D5. A reply without calls waits for the run's end, which records both in one commit."""
        self.held.lease.iterations = self.held.lease.step + 1
        if not reply.message.calls:
            self.last_reply = reply
            return
        lease = self.held.lease
        attempts = self.executor.prepare(reply.message.calls, lease.step)
        first = lease.next_seq + 1
        self.calls = [Call(attempt, new_id(), first + attempt.position) for attempt in attempts]
        self.has_next_call = False
        interim = interim_cells(reply, self.thinker.settled.latency_ms)
        cells = [*interim, *(tool_cell(call.cell, call.attempt.action_id) for call in self.calls)]
        pulse = journal.reply(lease, reply.message, self.thinker.settled, [_start(a) for a in attempts], cells)
        self.thinker.settled = NOTHING_CALLED
        lease.next_seq = first + len(attempts)
        self._announce(*self._posted(interim), *map(self._started, self.calls))
        self._feel(pulse)

    def act(self, calls: Sequence[ToolUse]) -> Answers:
        """Execute what `replied` has recorded as started.

        Raises:
            Cancelled: the run was stopped; the calls that had not run are answered as such.
        """
        try:
            for call in self.calls:
                self.held.check()
                self._run(call)
        except Cancelled:
            if not self.held.lost:
                self._cancel_rest()
            raise
        return Answers([call.result for call in self.calls if call.result])

    def acted(self, last: bool) -> None:
        """D6 of what is not recorded yet; with D7 + D2 when another model call follows."""
        starts = not last and not self.has_next_call
        self._record([call for call in self.calls if not call.recorded], self.summons.next_call if starts else None)

    def inbox(self) -> list[Message]:
        """User messages that came while the run was busy; they are answered in the next step (mission B11)."""
        if not self.pending:
            return []
        self.pending = False
        taken, ids = journal.take_messages(self.held.lease)
        with orm():
            announce_taken(self.summons.thread, ids)
        return taken

    def local(self, attempt: Attempt, effect: Callable[[], Result]) -> Result:
        """Effect, audit row and result in one transaction (invariant I7). After the last call of a reply the next
        model call starts in the same commit, unless the run ends there."""
        call = self.calls[attempt.position]
        with transaction.atomic():
            call.result = effect()
            is_last = all(other.recorded for other in self.calls if other is not call) and not self._ends()
            pulse = journal.outcome(
                self.held.lease,
                [_outcome(call.result)],
                {call.place: call.result.message},
                said_cells([call.result]),
                self.summons.next_call if is_last else None,
                on=orm_connection(),
            )
        call.recorded, self.has_next_call = True, is_last
        self._announce(self._completed(call))
        self._feel(pulse)
        return call.result

    def _ends(self) -> bool:
        """Whether a call of this reply has spoken to the user, after which a conversational run ends."""
        said = any(call.result.said is not None for call in self.calls if call.result)
        return said and self.summons.converses

    def _run(self, call: Call) -> None:
        with orm():
            call.result = self.executor.run(call.attempt)
        self.finished.append(call.result)

    def _cancel_rest(self) -> None:
        for call in self.calls:
            call.result = call.result or Result(
                call.attempt, ActionStatus.CANCELLED, "Not executed: the user stopped the run."
            )
        self._record([call for call in self.calls if not call.recorded], None)

    def _record(self, calls: Sequence[Call], next_call: NextCall | None) -> None:
        if not calls and next_call is None:
            return
        results = [call.result for call in calls if call.result]
        said = said_cells(results)
        entries = {call.place: call.result.message for call in calls if call.result}
        pulse = journal.outcome(self.held.lease, [_outcome(result) for result in results], entries, said, next_call)
        for call in calls:
            call.recorded = True
        self._announce(*map(self._completed, calls), *self._posted(said))
        self._feel(pulse)

    def _feel(self, pulse: Pulse) -> None:
        if pulse.cancelling:
            self.held.cancel.cancel("stopped")
        self.pending = pulse.pending

    def _announce(self, *events: Event) -> None:
        publish(self.summons.thread.pk, self.summons.thread.user_id, *events)

    def _posted(self, cells: Sequence[Cell]) -> list[MessagePosted]:
        return [cell_posted(self.held.lease.run_id, cell) for cell in cells]

    def _started(self, call: Call) -> ToolStart:
        attempt = call.attempt
        return ToolStart(
            run=self.held.lease.run_id,
            message=call.cell,
            action=attempt.action_id,
            tool=attempt.call.name,
            arguments=attempt.call.arguments,
        )

    def _completed(self, call: Call) -> ToolComplete:
        assert call.result is not None
        return ToolComplete(
            run=self.held.lease.run_id,
            message=call.cell,
            action=call.attempt.action_id,
            tool=call.attempt.call.name,
            status=call.result.status,
            summary=call.result.summary,
        )


def _start(attempt: Attempt) -> ActionStart:
    return ActionStart(
        attempt.action_id,
        attempt.position,
        attempt.call.id,
        attempt.call.name,
        attempt.effect,
        attempt.risk,
        attempt.reversal,
        attempt.call.arguments,
    )


def _outcome(result: Result) -> ActionOutcome:
    failed = result.status is ActionStatus.ERROR
    return ActionOutcome(
        result.attempt.action_id,
        result.status,
        "" if failed else result.observation,
        result.summary,
        result.observation if failed else "",
        result.undo,
    )
