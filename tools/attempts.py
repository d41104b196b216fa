"""One call of a tool and what became of it, as values."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from memory.messages import Message, ToolResult, ToolUse, tool as tool_message
from memory.text import clean, clip, shortened
from tools.base import UNCERTAIN, Arguments, Effect, Outcome, Reversal, Risk, ToolContext
from tools.cancel import BY_USER
from tools.changes import UndoRecord
from tools.models import ActionStatus
from tools.registry import AnyTool
from tools.untrusted import wrapped

LONGEST_SOURCES = 500
"""Of the names on one label, in characters."""

STOPPED = "Stopped by the user before it had ended."
CUT_OFF = "Cut off before it had ended: {why}. It may be run again."
UNKNOWN = (
    "The outcome is unknown: {how}. It may have taken effect. Do not repeat it without checking; an identical call "
    "needs the user's approval."
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call, validated. `problem` says why it cannot run; then `tool` and `arguments` may be missing."""

    action_id: UUID
    position: int
    call: ToolUse
    tool: AnyTool | None
    arguments: Arguments | None
    problem: str

    @property
    def effect(self) -> Effect:
        return self.tool.effect if self.tool else Effect.PURE

    @property
    def risk(self) -> Risk:
        if self.tool is None:
            return Risk.ALLOWED
        return self.tool.risk if self.arguments is None else self.tool.risk_of(self.arguments)

    @property
    def reversal(self) -> Reversal:
        return self.tool.reversal if self.tool else Reversal.NOTHING

    @property
    def alone(self) -> bool:
        """Whether it must not run beside other calls of its reply."""
        return self.tool is None or self.effect is Effect.LOCAL or not self.tool.parallel_safe

    def expected(self, context: ToolContext) -> UndoRecord | None:
        """What it would change if it ran now; None when nobody can tell."""
        return self.tool.expected(self.arguments, context) if self.tool and self.arguments else None

    def done(self, outcome: Outcome) -> "Result":
        return Result(
            self,
            ActionStatus.DONE,
            self._labelled(observation(outcome.observation), outcome.sources),
            clean(outcome.summary),
            outcome.undo,
            outcome.touched,
            outcome.sources,
            outcome.said,
            outcome.asks,
        )

    def fails(self, problem: str, sources: Sequence[str] = ()) -> "Result":
        return Result(self, ActionStatus.ERROR, self._labelled(observation(problem), sources), sources=sources)

    def denied(self, why: str) -> "Result":
        return Result(self, ActionStatus.DENIED, observation(why))

    def cancelled(self, why: str) -> "Result":
        return Result(self, ActionStatus.CANCELLED, why)

    def stopped(self, why: str) -> "Result":
        """It was begun and has ended without an effect, because its run stops (`tools.cancel`)."""
        return self.cancelled(STOPPED if why == BY_USER else CUT_OFF.format(why=why))

    def broke_off(self, how: str, said: str = "", sources: Sequence[str] = ()) -> "Result":
        """It was begun and has no result. What acts on the world may have done so all the same (invariant I6)."""
        if self.effect not in UNCERTAIN:
            return self.fails(f"The tool broke off: {how}.")
        return self.unknown(how, said, sources)

    def unknown(self, how: str, said: str = "", sources: Sequence[str] = ()) -> "Result":
        text = UNKNOWN.format(how=how)
        if said:
            text += f"\n{self._labelled(observation(said), sources)}"
        return Result(self, ActionStatus.UNKNOWN, text, sources=sources)

    def _labelled(self, text: str, sources: Sequence[str]) -> str:
        """Text of strangers says what it is, whichever tool brings it (mission D10)."""
        labels_itself = self.tool is not None and self.tool.foreign
        return wrapped(clip(", ".join(sources), LONGEST_SOURCES), text) if sources and not labels_itself else text


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an attempt: success with an observation, or an error, both in words for the model."""

    attempt: Attempt
    status: ActionStatus
    observation: str
    summary: str = ""
    undo: UndoRecord | None = None
    touched: Sequence[UUID] = ()
    sources: Sequence[str] = ()
    said: str | None = None
    asks: tuple[str, ...] | None = None

    @property
    def message(self) -> Message:
        failed = self.status not in (ActionStatus.DONE, ActionStatus.PROPOSED)
        return tool_message(ToolResult(id=self.attempt.call.id, content=self.observation, is_error=failed))


def observation(text: str) -> str:
    """Never blank (strict vendors refuse it, case HIS-04), never longer than a model should read."""
    text = clean(text)
    return shortened(text, settings.WAYMARK_OBSERVATION_LENGTH) if text.strip() else "Done, no output."
