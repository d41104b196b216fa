"""One step after another of a run: what the model replied, and what becomes of its calls."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from agents.engine import gates, journal
from agents.engine.assemble import Summons
from agents.engine.calls import Call, Gate
from agents.engine.cells import interim_cells, tool_cell
from agents.engine.leases import Held
from agents.engine.record import Record
from agents.engine.thinking import NOTHING_CALLED, Thinker
from agents.providers.base import Reply
from memory.ids import new_id
from memory.messages import Message, ToolUse
from memory.pool import orm
from tools.approvals import target
from tools.attempts import Attempt, Result
from tools.base import UNCERTAIN, Effect, Risk
from tools.cancel import Cancelled
from tools.executor import Executor
from tools.models import ActionStatus
from tools.policy import Policy

# Results of these are recorded as they come: another try could neither repeat nor look up what was really answered.
KEPT = UNCERTAIN | {Effect.IDEMPOTENT}
ASK_AGAIN = "This call needs the user's approval by now; nothing was done. Propose it again if it is still right."
SWITCHED_OFF = "The user has switched this tool off; nothing was done."
NOT_BEGUN = "Not executed: the user stopped the run."
NOT_BEGUN_YET = "Not executed: Waymark was stopped before it began. It may be run again."


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of one reply's calls, in order."""

    messages: Sequence[Message]
    said: bool


@dataclass
class Steps:
    """
    last_reply: the reply that ended the run, once there is one.
    gated_by: the policy by which it was said which of the calls need approval.
    unknown: digests of the run's calls with an unknown outcome; an identical call needs approval.
    """

    summons: Summons
    held: Held
    thinker: Thinker
    record: Record = field(init=False)
    gated_by: Policy = field(init=False)
    last_reply: Reply | None = None
    unknown: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.record, self.gated_by = Record(self.summons, self.held), self.summons.policy

    @cached_property
    def executor(self) -> Executor:
        lease = self.held.lease
        tools, cancel = self.summons.tools, self.held.cancel
        whose, marked = (lease.user_id, lease.thread_id, lease.run_id), self.held.progress.sources
        return Executor(tools, *whose, cancel, self.record, self.summons.offers, self.last_look, marked)

    def replied(self, reply: Reply) -> None:
        """D3 with D5 or D4. A reply without calls waits for the run's end, which records both in one commit."""
        lease, progress = self.held.lease, self.held.progress
        progress.iterations = progress.step + 1
        if not reply.message.calls:
            self.last_reply = reply
            return
        self.gated_by = self.summons.policy
        attempts = self.executor.prepare(reply.message.calls, progress.step)
        first = progress.next_seq + 1
        calls = [self._call(attempt, first + attempt.position) for attempt in attempts]
        self.record.begin(calls)
        interim = interim_cells(reply, self.thinker.settled.latency_ms)
        cells = [*interim, *(tool_cell(call.cell, call.attempt.action_id) for call in calls)]
        starts, requests = [call.start for call in calls], [call.request for call in calls if call.gate]
        pulse = journal.reply(lease, reply.message, self.thinker.settled, starts, requests, cells)
        self.thinker.settled = NOTHING_CALLED
        progress.next_seq = first + len(attempts)
        self.record.announce_calls(interim, calls)
        self.record.heed(pulse)

    def act(self, _: Sequence[ToolUse]) -> Answers:
        """Answer the calls of the reply. They are known here already, with their places and what became of them so
        far: `replied` has recorded them, or `recovery` has found them.

        Raises:
            Cancelled: the run was stopped; the calls that had not run are answered as such.
            Parked: some of them wait for approval, and so does the run.
            GivesWay: they go on waiting without it.
        """
        self._answer_all()
        if self.record.gives_way:
            self.record.outcomes(self.record.unrecorded)
            raise gates.GivesWay
        return Answers([call.message for call in self.record.calls], self.record.has_said)

    def acted(self, last: bool) -> None:
        """D6 of what is not recorded yet; with D7 + D2 when another model call follows."""
        starts = not last and not self.record.has_next_call
        self.record.outcomes(self.record.unrecorded, self.summons.next_call if starts else None)

    def carry_out(self, calls: list[Call]) -> list[Message]:
        """Carry out, between two steps, what was decided about calls of earlier steps; returns what the model is told.

        Raises:
            Cancelled: as `act`.
        """
        self.record.calls = calls
        self._answer_all()
        self.record.outcomes(self.record.unrecorded)
        return [call.message for call in calls]

    def inbox(self) -> list[Message]:
        """User messages that came while the run was busy; they are answered in the next step (mission B11)."""
        return self.record.take_messages() if self.record.pending else []

    def watch(self, call: Call) -> None:
        """Let the guard see a call of the step, in order; one that it blocks is answered with the reason."""
        attempt, progress = call.attempt, self.held.progress
        tool = None if attempt.problem else attempt.tool
        if why := progress.guard.admit(progress.step, attempt.position, attempt.call, tool):
            call.result = attempt.fails(why)

    def permit(self, call: Call) -> None:
        """Answer a call that the policy forbids, whenever it is about to run: also after a crash or an approval."""
        attempt = call.attempt
        if call.result is None and attempt.tool is not None and attempt.risk is Risk.FORBIDDEN:
            call.result = attempt.denied("This tool is forbidden here; nothing was done.")

    def ask_again(self, call: Call) -> None:
        """Answer a call that was begun without an approval and needs one as things stand now: it was no valid call when
        it was made, or something has changed since. It is not in doubt, for what acted on the world was looked up."""
        if self._gate(call) is None:
            return
        if call.started and call.attempt.effect is Effect.IDEMPOTENT:
            call.result = call.attempt.unknown("it was started, and now needs the user's approval")
        else:
            call.result = call.attempt.denied(ASK_AGAIN)

    def last_look(self, attempt: Attempt) -> Result | None:
        """Answer a call that is about to have an effect when its user has switched the tool off since the run began, or
        set it to ask since the call was made."""
        if attempt.tool is None or attempt.effect is Effect.PURE:
            return None
        self.summons.look_again()
        if not self.summons.offers(attempt.tool.name):
            return attempt.denied(SWITCHED_OFF)
        call = next(call for call in self.record.calls if call.attempt is attempt)
        asked = call.gate or self.summons.policy is self.gated_by or self._gate(call) is None
        return None if asked else attempt.denied(ASK_AGAIN)

    def _call(self, attempt: Attempt, place: int) -> Call:
        call = Call(attempt, new_id(), place)
        self.watch(call)
        self.permit(call)
        if attempt.tool is not None and not attempt.problem and call.result is None:
            call.gate = self._gate(call)
        call.started = call.result is None and call.gate is None
        return call

    def _gate(self, call: Call) -> Gate | None:
        attempt, repeats_unknown = call.attempt, bool(self.unknown) and call.digest in self.unknown
        context = self.executor.context(attempt, self.held.cancel)
        with orm():  # a tool may look up whose the thing is
            cause = self.summons.policy.cause(attempt, context, repeats_unknown=repeats_unknown)
            about = target(attempt.call.arguments, partial(attempt.expected, context)) if cause else ""
        return Gate(cause, context.sources, about) if cause else None

    def _answer_all(self) -> None:
        try:
            self._run_those_that_may()
            while any(call.waits for call in self.record.calls):
                gates.wait(self.record)
                self._run_those_that_may()
        except Cancelled:
            if self.held.cut_off:
                self._keep_what_acted()
            elif not self.held.lost:
                self._cancel_rest()
            raise

    def _run_those_that_may(self) -> None:
        """What was approved runs one by one, because what it was approved on is compared right before."""
        for call in self.record.calls:
            call.refuse()
        self._run([call for call in self.record.calls if call.result is None and call.started])
        for call in self.record.calls:
            if call.result is None and not call.started and not call.waits:
                context = self.executor.context(call.attempt, self.held.cancel)
                if gates.start(self.record, call, context):
                    self._run([call])

    def _run(self, calls: Sequence[Call]) -> None:
        ready = {call.attempt.action_id: call for call in calls}
        for result in self.executor.run([call.attempt for call in ready.values()]):
            self._ran(ready[result.attempt.action_id], result)
        if self.held.cut_off or any(call.result is None for call in ready.values()):
            self.held.check()

    def _ran(self, call: Call, result: Result) -> None:
        """What acted on the world is recorded at once, unless the step is over with it; the rest can be repeated."""
        call.result = result = result if call.recorded else self.record.noted(call, result)
        if result.status is ActionStatus.UNKNOWN:
            self.unknown.add(call.digest)
        waits = self.held.cut_off or self.record.is_last(call)
        if result.attempt.effect in KEPT and not call.recorded and not waits:
            self.record.outcomes([call])

    def _keep_what_acted(self) -> None:
        """The step is left to another worker, which runs again what may be, and can look up what is verifiable. What it
        could not know is recorded: what the other calls have come to, and that they were not begun."""
        acting = [call for call in self.record.unrecorded if call.attempt.effect in UNCERTAIN and call.started]
        for call in acting:
            call.result = call.result or call.attempt.cancelled(NOT_BEGUN_YET)
        self.record.outcomes([call for call in acting if not _can_be_looked_up(call)])

    def _cancel_rest(self) -> None:
        for call in self.record.calls:
            if call.result is None:
                call.result = call.attempt.cancelled(NOT_BEGUN)
        self.record.outcomes(self.record.unrecorded)


def _can_be_looked_up(call: Call) -> bool:
    """Whether another worker will know what became of a call of which this one does not."""
    in_doubt = call.result is not None and call.result.status is ActionStatus.UNKNOWN
    return in_doubt and call.attempt.effect is Effect.VERIFIABLE
