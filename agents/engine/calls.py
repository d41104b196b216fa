"""One call of a reply on its way: its places, what it waits for, what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from django.conf import settings

from agents.engine.journal import ActionOutcome, ActionStart, ApprovalRequest
from memory.messages import Message, user
from tools.approvals import PROPOSED, VERDICTS, verdict
from tools.attempts import Attempt, Result
from tools.models import ActionStatus, ApprovalState, Cause
from tools.signature import digest

SECONDS_A_DAY = 86_400


@dataclass(slots=True)
class Gate:
    """The approval that a call needs, as far as it is known here. sources: the mark of its run when it was asked.
    target: what it is about (`tools.approvals.target`)."""

    cause: Cause
    sources: Sequence[str] = ()
    target: str = ""
    state: ApprovalState = ApprovalState.REQUESTED
    reason: str = ""


@dataclass(slots=True)
class Call:
    """
    cell: its message in the thread. place: where its result goes in the history.
    gate: the approval that it needs; None when it needs none.
    started: committed as started, by us or by a worker that died since `started_at`.
    recorded: its result is in the journal.
    detached: its reply has been answered long ago ("waits for approval", "unknown"); what became of it is told in the
        user's place, because a call has exactly one result (invariant I9).
    """

    attempt: Attempt
    cell: UUID
    place: int
    gate: Gate | None = None
    started: bool = True
    started_at: datetime | None = None
    result: Result | None = None
    recorded: bool = False
    detached: bool = False

    @property
    def digest(self) -> str:
        return digest(self.attempt.call.name, self.attempt.call.arguments)

    @property
    def waits(self) -> bool:
        return self.result is None and self.gate is not None and self.gate.state is ApprovalState.REQUESTED

    @property
    def message(self) -> Message:
        assert self.result is not None
        return self._told(self.result) if self.detached else self.result.message

    @property
    def outcome(self) -> ActionOutcome:
        assert self.result is not None
        result, failed = self.result, self.result.status is ActionStatus.ERROR
        return ActionOutcome(
            self.attempt.action_id,
            result.status,
            "" if failed else result.observation,
            result.summary,
            result.observation if failed else "",
            result.undo.model_dump(mode="json") if result.undo else None,
        )

    @property
    def start(self) -> ActionStart:
        attempt = self.attempt
        return ActionStart(
            attempt.action_id,
            attempt.position,
            attempt.call.id,
            attempt.call.name,
            attempt.effect,
            attempt.risk,
            attempt.reversal,
            attempt.call.arguments,
            ActionStatus.STARTED if self.started else ActionStatus.INTENT,
        )

    @property
    def request(self) -> ApprovalRequest:
        assert self.gate is not None
        seconds = settings.WAYMARK_APPROVAL_DAYS * SECONDS_A_DAY
        gate = self.gate
        return ApprovalRequest(self.attempt.action_id, gate.cause, self.digest, seconds, gate.sources, gate.target)

    def propose(self) -> None:
        """Answer it as waiting for approval, so that the conversation can go on meanwhile."""
        self.result = Result(self.attempt, ActionStatus.PROPOSED, PROPOSED)

    def refuse(self) -> None:
        """Answer it with the decision against it, if there is one."""
        if self.result or self.gate is None or self.gate.state not in VERDICTS:
            return
        self.result = self.attempt.denied(verdict(self.gate.state, self.gate.reason))

    def _told(self, result: Result) -> Message:
        tool = quoteattr(self.attempt.call.name)
        status, text = quoteattr(result.status), escape(result.observation)
        return user(f"<decided_call tool={tool} status={status}>{text}</decided_call>")
