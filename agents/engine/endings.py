"""What a run ended as: its state, its last words, and what it leaves in the history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

from agents.budgets import words
from agents.budgets.models import Budget
from agents.budgets.room import OutOfBudget
from agents.budgets.worst import NOTHING, Amount
from agents.connections import Choice
from agents.engine.cells import text_cell, thinking_cells, wait_cell
from agents.engine.deeds import account
from agents.engine.journal import Cell, Settled
from agents.engine.limits import LimitReached
from agents.engine.retries import Later, long_pause
from agents.engine.thinking import NOTHING_CALLED, CallFailed
from agents.models import CallStatus
from agents.providers.base import Finish, ProviderError, Reply, Trouble, Usage
from memory.degrade import HISTORY_REFUSED
from memory.messages import Message, assistant
from memory.metadata import MessageMetadata
from memory.models import GAVE_WAY, RunStatus, Source

UNFINISHED = {
    Finish.LENGTH: "The answer is cut off: the model reached the longest answer it may give.",
    Finish.REFUSED: "The model declined to answer.",
}


NOTHING_TO_SAY = assistant("Nothing to say.")

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

    def unsaid(self) -> Self:
        """The same, of which the history alone keeps the last words, and its user is shown errors only."""
        if self.reason == "empty":
            return replace(self, status=RunStatus.SUCCEEDED, reason="", error="", messages=[NOTHING_TO_SAY], cells=[])
        return replace(self, cells=[cell for cell in self.cells if cell.source == Source.ERROR])

    @classmethod
    def stopped(cls, run_id: UUID, settled: Settled) -> Self:
        text = f"Stopped by you. {account(run_id)}"
        cell = text_cell(Source.AGENT, text, MessageMetadata(reason="stopped"))
        told = [_told("The user stopped you here.")]
        return cls(RunStatus.CANCELLED, settled, reason="stopped", report=text, messages=told, cells=[cell])

    @classmethod
    def gave_way(cls, settled: Settled) -> Self:
        """What it has asked for stays open; nothing is said, for what it waits for is in sight."""
        return cls(RunStatus.SUCCEEDED, settled, GAVE_WAY)

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
        text = (
            "I was cut off several times in the middle of this: a worker ended, or the database went away. "
            "I do not try again by myself."
        )
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


def _told(why: str) -> Message:
    """Why a run was cut, for the model's next turn; in its own place, so that roles alternate for every vendor."""
    return assistant(f"[This turn ended early. {why}]")
