"""How runs end: the last words, the terminal state, and whoever is to be told."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from agents.agentable import Agentable, agentable_of
from agents.budgets import ledger, words
from agents.budgets.ledger import OutOfBudget
from agents.budgets.models import Budget
from agents.budgets.worst import NOTHING, Amount
from agents.connections import Choice
from agents.engine import bell, journal
from agents.engine.cells import text_cell, thinking_cells, wait_cell
from agents.engine.deeds import account
from agents.engine.journal import Cell, Final, Lease, NextCall, Settled
from agents.engine.limits import LimitReached
from agents.engine.reports import NO_REPORT, report, tell_again
from agents.engine.retries import Later, long_pause
from agents.engine.thinking import NOTHING_CALLED, CallFailed
from agents.live.announce import announce_action, cell_posted, status_changed
from agents.live.events import Event, Failed
from agents.live.stream import publish
from agents.models import CallStatus
from agents.providers.base import Finish, ProviderError, Reply, Trouble, Usage
from memory.context import Context
from memory.degrade import HISTORY_REFUSED
from memory.messages import Message, assistant
from memory.metadata import MessageMetadata
from memory.models import WAITS, RunStatus, Source, Thread
from memory.pool import orm, orm_connection

UNFINISHED = {
    Finish.LENGTH: "The answer is cut off: the model reached the longest answer it may give.",
    Finish.REFUSED: "The model declined to answer.",
}


LOOK_AGAIN = 60.0
"""Seconds after which a run that waits for what others hold of its budget is taken up again."""

LOOK_AGAIN_AT_LATEST = 3600.0
"""Seconds after which every run that waits for a budget is: whoever allowed more may have died before it woke it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run ended as; one that waits for its model, or for money, has not ended, but is let go of.

    report: what a waiting parent is told.
    again_after: seconds until it makes sense to ask the model again.
    short_of: the budget that it waits for.
    """

    status: RunStatus
    settled: Settled
    reason: str = ""
    error: str = ""
    report: str = ""
    messages: Sequence[Message] = ()
    cells: Sequence[Cell] = ()
    again_after: float | None = None
    short_of: Budget | None = None

    @classmethod
    def done(cls, reply: Reply | None, settled: Settled) -> Self:
        """The model called no tool any more; or, without a last reply, it has spoken through a tool already."""
        if reply is None:
            return cls(RunStatus.SUCCEEDED, settled)
        text = reply.message.text
        notice = UNFINISHED.get(reply.finish)
        if not text.strip():
            return cls.failed("empty", notice or "The model gave an empty answer.", settled)
        cells = [*thinking_cells(reply, settled.latency_ms), text_cell(Source.AGENT, text)]
        if notice:
            cells.append(text_cell(Source.ERROR, notice, MessageMetadata(reason="limit", retryable=False)))
        return cls(RunStatus.SUCCEEDED, settled, report=text, messages=[reply.message], cells=cells)

    @classmethod
    def stopped(cls, run_id: UUID, settled: Settled) -> Self:
        text = f"Stopped by you. {account(run_id)}"
        cell = text_cell(Source.AGENT, text, MessageMetadata(reason="stopped"))
        told = [_told("The user stopped you here.")]
        return cls(RunStatus.CANCELLED, settled, reason="stopped", report=text, messages=told, cells=[cell])

    @classmethod
    def limited(cls, limit: LimitReached, settled: Settled) -> Self:
        metadata = MessageMetadata(reason="limit", retryable=True)
        cell = text_cell(Source.ERROR, limit.message, metadata)
        told = [_told(limit.message)]
        return cls(RunStatus.FAILED, settled, limit.reason, limit.message, limit.message, told, [cell])

    @classmethod
    def failed_call(cls, run_id: UUID, failed: CallFailed, settled: Settled, *, reschedules: bool) -> Self:
        """The model did not answer: the run waits, or for those that do not wait by themselves it ends (mission B5)."""
        error, verdict = failed.error, failed.verdict
        if isinstance(verdict, Later):
            return cls.waiting(run_id, error, verdict, settled) if reschedules else cls.paused(error, verdict, settled)
        if verdict.asked is not None:
            return cls.failed(error.trouble, f"{error.message} {long_pause(verdict.asked)}", settled)
        if not verdict.attempts:
            reason = HISTORY_REFUSED if error.refuses_content else error.trouble
            return cls.failed(reason, error.message, settled)
        text = f"{error.message} It failed permanently: {verdict.attempts} more tries, each later, did not help."
        cell = wait_cell(run_id, text, MessageMetadata(reason="error", retryable=False))
        return cls(RunStatus.FAILED, settled, error.trouble, text, text, cells=[cell])

    @classmethod
    def waiting(cls, run_id: UUID, error: ProviderError, later: Later, settled: Settled) -> Self:
        metadata = MessageMetadata(reason="error", retryable=True, attempt=later.attempt, of=later.of)
        cell = wait_cell(run_id, error.message, metadata)
        return cls(RunStatus.RETRY_WAIT, settled, error.trouble, cells=[cell], again_after=later.seconds)

    @classmethod
    def paused(cls, error: ProviderError, later: Later, settled: Settled) -> Self:
        text = f"{error.message} The task is paused."
        return replace(cls.failed(error.trouble, text, settled), again_after=later.seconds)

    @classmethod
    def out_of_budget(cls, run_id: UUID, out: OutOfBudget, settled: Settled) -> Self:
        """The run waits and goes on with the same step: when the budget begins anew or is raised (mission C5)."""
        shortage, budget = out.shortage, out.shortage.budget
        seconds = LOOK_AGAIN if shortage.waits else LOOK_AGAIN_AT_LATEST
        if shortage.until is not None:
            seconds = min(seconds, (shortage.until - budget.now).total_seconds())
        more = budget.takes_more and shortage.is_of_money
        metadata = MessageMetadata(
            reason="budget", budget=budget.pk, more=more, dollars=shortage.dollars if more else 1, retryable=False
        )
        cell = wait_cell(run_id, words.paused(out), metadata)
        return cls(RunStatus.WAITING_BUDGET, settled, "budget", cells=[cell], again_after=seconds, short_of=budget)

    @classmethod
    def unpriced(cls, choice: Choice, settled: Settled) -> Self:
        """Its user has a budget in dollars and can say what the model costs (case COS-03 a)."""
        text = words.unpriced(choice.model)
        metadata = MessageMetadata(reason="error", retryable=True, unpriced=(choice.endpoint.kind, choice.model))
        return cls(RunStatus.FAILED, settled, "unpriced", text, text, cells=[text_cell(Source.ERROR, text, metadata)])

    @classmethod
    def without_tools(cls, model: str) -> Self:
        """Nothing was asked: an agent cannot work without tools, and many servers would only fail."""
        text = f"{model} cannot use tools, which I need. Choose another model for me in the settings."
        return cls.failed(Trouble.NO_TOOLS, text, NOTHING_CALLED)

    @classmethod
    def without_key(cls) -> Self:
        text = "The stored key of my model cannot be read any more. Give it again under Settings → Models and keys."
        return cls.failed(Trouble.BAD_KEY, text, NOTHING_CALLED)

    @classmethod
    def crashed(cls) -> Self:
        text = "The worker ended several times in the middle of this. I do not try again by myself."
        return cls.failed("crashed", text, NOTHING_CALLED)

    @classmethod
    def broken(cls, charge: Amount = NOTHING) -> Self:
        """What was used before the fault is on record; the call that may be open is of unknown cost.

        Args:
            charge: what it may have come to.
        """
        unknown = Settled(CallStatus.FAILED, Usage(), None, 0, "", *charge)
        return cls.failed("bug", "Something went wrong inside Waymark. The log has the details.", unknown)

    @classmethod
    def failed(cls, reason: str, text: str, settled: Settled) -> Self:
        cell = text_cell(Source.ERROR, text, MessageMetadata(reason="error", retryable=True))
        return cls(RunStatus.FAILED, settled, reason, text, text, cells=[cell])


@dataclass(frozen=True, slots=True)
class Settler:
    """Commits an ending (D8), then announces it and rings for whoever goes on.

    agentable: whose run it is; None when it cannot be loaded.
    """

    thread: Thread
    agentable: Agentable | None
    lease: Lease

    def settle(self, ending: Ending) -> None:
        """
        Raises:
            LeaseLost: the run is not ours any more; nothing was written.
        """
        if ending.status in WAITS:
            self._wait(ending)
            return
        parent = self.agentable.reports_to() if self.agentable else None
        if self.agentable is None or parent is None:
            self.settle_alone(ending)
        else:
            self._end(ending, self._commit_with_report(ending, self.agentable, parent))

    def settle_alone(self, ending: Ending) -> None:
        """Settle without the hooks of the agent's kind, and without a report. Raises as `settle`."""
        self._end(ending, self._commit(ending))

    def _end(self, ending: Ending, final: Final) -> None:
        self._announce(ending, final)
        bell.ring_next(final.in_line)
        if final.next_run is not None:
            bell.announce_and_ring(self.thread, final.next_run)

    def _wait(self, ending: Ending) -> None:
        (cell,), thread, run_id = ending.cells, self.thread, self.lease.run_id
        waiting = journal.wait(self.lease, ending.status, ending.settled, ending.again_after, cell)
        bell.ring_next(waiting.in_line)
        if waiting.metadata is None:
            bell.ring(run_id)
            return
        if ending.short_of and self._is_too_late(ending.short_of):
            return
        posted = cell_posted(run_id, replace(cell, metadata=waiting.metadata))
        publish(thread.pk, thread.user_id, posted, status_changed(run_id, ending.status, self.lease.progress.step))

    def _is_too_late(self, budget: Budget) -> bool:
        """Whether more was allowed between the look at the budget and the wait, when nothing waited that could have
        been woken. The run then goes on."""
        with orm():
            if not ledger.has_changed(budget):
                return False
        if journal.retry_now(self.lease.run_id):
            bell.announce_and_ring(self.thread, self.lease.run_id, self.lease.progress.step)
        return True

    def _commit(self, ending: Ending, *, inside: bool = False) -> Final:
        return journal.final(
            self.lease,
            ending.status,
            ending.settled,
            reason=ending.reason,
            error=ending.error,
            messages=ending.messages,
            cells=ending.cells,
            on=orm_connection() if inside else None,
        )

    def _commit_with_report(self, ending: Ending, agentable: Agentable, parent: Thread) -> Final:
        """The report is part of the end: a crash loses both or neither."""
        words = ending.report.strip() or NO_REPORT

        def attempt() -> Final:
            with orm(), transaction.atomic():
                final = self._commit(ending, inside=True)
                if agentable.settled(ending.status, words, ending.again_after):
                    report(agentable, parent, words)
            return final

        def landed() -> Final | None:
            if final := journal.final_landed(self.lease, ending.status):
                tell_again(agentable, parent)
            return final

        return journal.surely(attempt, landed)

    def _announce(self, ending: Ending, final: Final) -> None:
        thread, run_id = self.thread, self.lease.run_id
        end = status_changed(run_id, ending.status, self.lease.progress.iterations, final.cost)
        publish(thread.pk, thread.user_id, *(_last_word(run_id, cell) for cell in ending.cells), end)
        if final.withdrawn:
            with orm():
                for action_id in final.withdrawn:
                    announce_action(thread, action_id)


def _last_word(run_id: UUID, cell: Cell) -> Event:
    if cell.source != Source.ERROR:
        return cell_posted(run_id, cell)
    return Failed(run=run_id, message=cell.id, text=cell.content, retryable=bool(cell.metadata.get("retryable")))


def give_up(run_id: UUID, ending: Ending) -> None:
    """End a run for which nothing can be assembled (a key that is gone, a broken setting) where its user sees it."""
    lease = journal.claim(run_id, NextCall("", ""), Context("", None))
    if lease is None:
        return
    if lease.progress.cancelling:
        ending = Ending.stopped(run_id, NOTHING_CALLED)
    with orm():
        thread = Thread.objects.get(pk=lease.thread_id)
        agentable = _whose(thread)
    # Where the history ends is not known, so it stays as it is.
    Settler(thread, agentable, lease).settle(replace(ending, settled=NOTHING_CALLED, messages=()))


def _whose(thread: Thread) -> Agentable | None:
    try:
        return agentable_of(thread)
    except (LookupError, ValueError, ObjectDoesNotExist):
        return None


def _told(why: str) -> Message:
    """Why a run was cut, for the model's next turn; in its own place, so that roles alternate for every vendor."""
    return assistant(f"[This turn ended early. {why}]")
