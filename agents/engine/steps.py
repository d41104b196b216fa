"""One step after another of a run: what the model replied and what its calls came to, recorded and announced."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from django.db import transaction

from agents.engine import gates, journal
from agents.engine.assemble import Summons
from agents.engine.calls import Call, Gate
from agents.engine.cells import interim_cells, said_cells, tool_cell
from agents.engine.journal import Cell, NextCall, Pulse
from agents.engine.leases import Held
from agents.engine.thinking import NOTHING_CALLED, Thinker
from agents.live.announce import announce_taken, call_changed, cell_posted
from agents.live.events import Event, MessagePosted
from agents.live.stream import publish
from agents.providers.base import Reply
from memory.ids import new_id
from memory.messages import Message, ToolUse
from memory.models import ThreadMessage
from memory.pool import orm, orm_connection
from tools import approvals
from tools.attempts import Attempt, Result
from tools.base import UNCERTAIN, Effect, Risk
from tools.cancel import Cancelled
from tools.executor import Executor
from tools.models import ActionStatus

# Results of these are recorded as they come: another try could neither repeat nor look up what was really answered.
KEPT = UNCERTAIN | {Effect.IDEMPOTENT}
NOT_BEGUN = "Not executed: the user stopped the run."


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of one reply's calls, in order."""

    messages: Sequence[Message]
    said: bool


@dataclass
class Steps:
    """
    last_reply: the reply that ended the run, once there is one.
    finished: the results so far, for the words that a stopped run leaves.
    has_next_call: whether the model call that follows the current calls was started with the last of them.
    unknown: digests of the run's calls with an unknown outcome; an identical call needs approval.
    spoken: whether the current step has said something to the user before this worker took it up.
    """

    summons: Summons
    held: Held
    thinker: Thinker
    last_reply: Reply | None = None
    finished: list[Result] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    pending: bool = False
    has_next_call: bool = False
    spoken: bool = False

    @cached_property
    def executor(self) -> Executor:
        lease = self.held.lease
        return Executor(self.summons.tools, lease.user_id, lease.thread_id, lease.run_id, self.held.cancel, self)

    def replied(self, reply: Reply) -> None:
        """D3 with D5 or D4. A reply without calls waits for the run's end, which records both in one commit."""
        lease = self.held.lease
        lease.iterations = lease.step + 1
        if not reply.message.calls:
            self.last_reply = reply
            return
        attempts = self.executor.prepare(reply.message.calls, lease.step)
        first = lease.next_seq + 1
        self.calls = [self._call(attempt, first + attempt.position) for attempt in attempts]
        self.has_next_call = self.spoken = False
        interim = interim_cells(reply, self.thinker.settled.latency_ms)
        cells = [*interim, *(tool_cell(call.cell, call.attempt.action_id) for call in self.calls)]
        starts, requests = [call.start for call in self.calls], [call.request for call in self.calls if call.gate]
        pulse = journal.reply(lease, reply.message, self.thinker.settled, starts, requests, cells)
        self.thinker.settled = NOTHING_CALLED
        lease.next_seq = first + len(attempts)
        self.announce(*self._posted(interim), *map(self._changed, self.calls))
        self.feel(pulse)

    def act(self, calls: Sequence[ToolUse]) -> Answers:
        """Answer the calls of the reply that `replied` has recorded, or `recovery` has found.

        Raises:
            Cancelled: the run was stopped; the calls that had not run are answered as such.
            Waiting: some of them wait for approval, and so does the run.
        """
        self._answer_all()
        return Answers([call.message for call in self.calls], self._has_said())

    def acted(self, last: bool) -> None:
        """D6 of what is not recorded yet; with D7 + D2 when another model call follows."""
        starts = not last and not self.has_next_call
        self.record([call for call in self.calls if not call.recorded], self.summons.next_call if starts else None)

    def show(self, calls: Sequence[Call]) -> None:
        """Give calls that were not in a reply a cell in the thread."""
        run_id, thread_id = self.held.lease.run_id, self.held.lease.thread_id
        cells = [tool_cell(call.cell, call.attempt.action_id) for call in calls]
        with orm():
            ThreadMessage.objects.bulk_create(
                ThreadMessage(run_id=run_id, thread_id=thread_id, **dataclasses.asdict(cell)) for cell in cells
            )
        self.announce(*self._posted(cells))

    def decided(self, calls: list[Call]) -> list[Message]:
        """Carry out, between two steps, what was decided about calls of earlier steps; returns what the model is told.

        Raises:
            Cancelled: as `act`.
        """
        self.calls = calls
        self._answer_all()
        self.record([call for call in calls if not call.recorded], None)
        return [call.message for call in calls]

    def inbox(self) -> list[Message]:
        """User messages that came while the run was busy; they are answered in the next step (mission B11)."""
        if not self.pending:
            return []
        self.pending = False
        taken, ids = journal.take_messages(self.held.lease, self.summons.context if self.held.lease.open_step else None)
        self.held.lease.open_step = False
        with orm():
            announce_taken(self.summons.thread, ids)
        return taken

    def may_start(self) -> None:
        self.held.check()

    def local(self, attempt: Attempt, effect: Callable[[], Result]) -> Result:
        """Effect, audit row and result in one transaction (invariant I7). After the last call of a reply the next
        model call starts in the same commit, unless the run ends there."""
        call = next(each for each in self.calls if each.attempt is attempt)
        lease = self.held.lease
        before = lease.step, lease.call_id

        def act() -> Pulse:
            lease.step, lease.call_id = before
            return self._in_one_transaction(call, effect)

        pulse = journal.surely(act, partial(journal.outcome_landed, lease, attempt.action_id))
        call.recorded = True
        self.has_next_call = lease.step > before[0]
        self.announce(self._changed(call), *self._posted(said_cells([call.result] if call.result else [])))
        self.feel(pulse)
        assert call.result is not None
        return call.result

    def _in_one_transaction(self, call: Call, effect: Callable[[], Result]) -> Pulse:
        assert call.attempt.tool is not None
        with self.held.within(call.attempt.tool.timeout_seconds), orm(), transaction.atomic():
            call.result = self.noted(call, effect())
            return journal.outcome(
                self.held.lease,
                [call.outcome],
                {call.place: call.message},
                said_cells([call.result]),
                self.summons.next_call if self._is_last(call) and not self._ends() else None,
                on=orm_connection(),
            )

    def watch(self, call: Call) -> None:
        """Let the guard see a call of the step, in order; one that it blocks is answered with the reason."""
        attempt, lease = call.attempt, self.held.lease
        tool = None if attempt.problem else attempt.tool
        if why := lease.guard.admit(lease.step, attempt.position, attempt.call, tool):
            call.result = attempt.fails(why)

    def permit(self, call: Call) -> None:
        """Answer a call that the policy forbids, whenever it is about to run: also after a crash or an approval."""
        attempt = call.attempt
        if call.result is None and attempt.tool is not None and attempt.risk is Risk.FORBIDDEN:
            call.result = attempt.denied("This tool is forbidden here; nothing was done.")

    def noted(self, call: Call, result: Result) -> Result:
        """Let the guard see what a call came to; it may add a warning to what the model reads."""
        if call.detached:
            return result
        failed = result.status is ActionStatus.ERROR
        warning = self.held.lease.guard.note(call.attempt.position, result.observation, failed=failed)
        return dataclasses.replace(result, observation=f"{result.observation}\n{warning}") if warning else result

    def _call(self, attempt: Attempt, place: int) -> Call:
        call = Call(attempt, new_id(), place)
        self.watch(call)
        self.permit(call)
        if attempt.tool is not None and not attempt.problem and call.result is None:
            repeats_unknown = bool(self.unknown) and call.digest in self.unknown
            cause = approvals.cause(attempt.tool, repeats_unknown=repeats_unknown)
            call.gate = Gate(cause) if cause else None
        call.started = call.result is None and call.gate is None
        return call

    def _answer_all(self) -> None:
        try:
            self._run_those_that_may()
            while any(call.waits for call in self.calls):
                gates.wait(self)
                self._run_those_that_may()
        except Cancelled:
            if not self.held.lost:
                self._cancel_rest()
            raise

    def _run_those_that_may(self) -> None:
        for call in self.calls:
            call.refuse()
            if call.result is None and not call.started and not call.waits:
                gates.start(self, call)
        ready = {call.attempt.action_id: call for call in self.calls if call.result is None and call.started}
        for result in self.executor.run([call.attempt for call in ready.values()]):
            self._ran(ready[result.attempt.action_id], result)
        if any(call.result is None for call in ready.values()):
            self.held.check()

    def _ran(self, call: Call, result: Result) -> None:
        """What acted on the world is recorded at once, unless the step is over with it; the rest can be repeated."""
        call.result = result = result if call.recorded else self.noted(call, result)
        self.finished.append(result)
        if result.status is ActionStatus.UNKNOWN:
            self.unknown.add(call.digest)
        if result.attempt.effect in KEPT and not call.recorded and not self._is_last(call):
            self.record([call], None)

    def _is_last(self, call: Call) -> bool:
        """Whether this outcome is the only one of its step that is not recorded."""
        return not call.detached and all(other.recorded for other in self.calls if other is not call)

    def _has_said(self) -> bool:
        return self.spoken or any(call.result.said is not None for call in self.calls if call.result)

    def _ends(self) -> bool:
        """Whether a call of this reply has spoken to the user, after which a conversational run ends."""
        return self._has_said() and self.summons.converses

    def _cancel_rest(self) -> None:
        for call in self.calls:
            if call.result is None:
                call.result = call.attempt.cancelled(NOT_BEGUN)
                self.finished.append(call.result)
        self.record([call for call in self.calls if not call.recorded], None)

    def record(self, calls: Sequence[Call], next_call: NextCall | None) -> None:
        """D6 of these calls; with D7 + D2 when a model call follows."""
        if not calls and next_call is None:
            return
        said = said_cells([call.result for call in calls if call.result])
        entries = {call.place: call.message for call in calls}
        pulse = journal.outcome(self.held.lease, [call.outcome for call in calls], entries, said, next_call)
        for call in calls:
            call.recorded = True
        self.announce(*map(self._changed, calls), *self._posted(said))
        self.feel(pulse)

    def feel(self, pulse: Pulse) -> None:
        """Take in what a durable point brought back."""
        if pulse.cancelling:
            self.held.cancel.cancel("stopped")
        self.pending = pulse.pending

    def announce(self, *events: Event) -> None:
        publish(self.summons.thread.pk, self.summons.thread.user_id, *events)

    def _posted(self, cells: Sequence[Cell]) -> list[MessagePosted]:
        return [cell_posted(self.held.lease.run_id, cell) for cell in cells]

    def _changed(self, call: Call) -> Event:
        return call_changed(self.held.lease.run_id, call)
