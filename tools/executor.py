"""From a model's call to its result: validate, run, tell. The loop knows none of it."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import structlog
from django.conf import settings
from pydantic import JsonValue, ValidationError

from memory.messages import Message, ToolResult, ToolUse, tool as tool_message
from memory.text import clean
from tools.base import Arguments, Effect, Outcome, Reversal, Risk, ToolContext, ToolError
from tools.cancel import Cancelled, CancelToken
from tools.models import ActionStatus
from tools.registry import AnyTool

log = structlog.get_logger(__name__)


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
        return self.tool.risk if self.tool else Risk.ALLOWED

    @property
    def reversal(self) -> Reversal:
        return self.tool.reversal if self.tool else Reversal.NOTHING


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an attempt: success with an observation, or an error, both in words for the model."""

    attempt: Attempt
    status: ActionStatus
    observation: str
    summary: str = ""
    undo: dict[str, JsonValue] | None = None
    said: str | None = None

    @property
    def message(self) -> Message:
        failed = self.status is not ActionStatus.DONE
        return tool_message(ToolResult(id=self.attempt.call.id, content=self.observation, is_error=failed))


class Recorder(Protocol):
    """Whoever keeps the journal. `local` runs an effect in our database and commits it together with its outcome."""

    def local(self, attempt: Attempt, effect: Callable[[], Result]) -> Result: ...


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs the calls of one run, on behalf of one user."""

    tools: Mapping[str, AnyTool]
    user_id: int
    thread_id: UUID
    run_id: UUID
    cancel: CancelToken
    recorder: Recorder

    def prepare(self, calls: Sequence[ToolUse], step: int) -> list[Attempt]:
        """Validate the calls of one reply. The ids are deterministic, so that a lost commit can be looked up."""
        return [
            self._validate(call, position, uuid.uuid5(self.run_id, f"{step}/{position}"))
            for position, call in enumerate(calls)
        ]

    def run(self, attempt: Attempt) -> Result:
        """Run one attempt; its result is recorded already when the tool is local.

        Raises:
            Cancelled: the run was stopped.
        """
        if attempt.problem or attempt.tool is None:
            return Result(attempt, ActionStatus.ERROR, attempt.problem)
        if attempt.tool.effect is Effect.LOCAL:
            return self._local(attempt)
        return self._guarded(attempt)

    def _local(self, attempt: Attempt) -> Result:
        try:
            return self.recorder.local(attempt, lambda: self._call(attempt))
        except ToolError as error:
            return Result(attempt, ActionStatus.ERROR, _observation(str(error)))

    def _guarded(self, attempt: Attempt) -> Result:
        try:
            return self._call(attempt)
        except ToolError as error:
            return Result(attempt, ActionStatus.ERROR, _observation(str(error)))
        except Cancelled:
            raise
        except Exception as error:
            log.exception("tool failed", tool=attempt.call.name)
            return Result(attempt, ActionStatus.ERROR, _observation(f"The tool failed: {type(error).__name__}."))

    def _call(self, attempt: Attempt) -> Result:
        assert attempt.tool is not None
        context = ToolContext(self.user_id, self.thread_id, self.run_id, attempt.action_id, self.cancel)
        outcome: Outcome = attempt.tool.run(attempt.arguments, context)
        return Result(
            attempt,
            ActionStatus.DONE,
            _observation(outcome.observation),
            clean(outcome.summary),
            outcome.undo,
            outcome.said,
        )

    def _validate(self, call: ToolUse, position: int, action_id: UUID) -> Attempt:
        tool = self.tools.get(call.name)
        if tool is None:
            offered = ", ".join(self.tools) or "none"
            return Attempt(action_id, position, call, None, None, f"There is no tool {call.name!r}. Tools: {offered}.")
        if call.problem:
            return Attempt(action_id, position, call, tool, None, call.problem)
        try:
            arguments: Any = tool.Arguments.model_validate(call.arguments)
        except ValidationError as error:
            return Attempt(action_id, position, call, tool, None, _explain(error))
        return Attempt(action_id, position, call, tool, arguments, "")


def _explain(error: ValidationError) -> str:
    lines = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()]
    return clean("The arguments are not valid, nothing was done. " + "; ".join(lines))


def _observation(text: str) -> str:
    """Never blank (strict vendors refuse it, case HIS-04), never longer than a model should read."""
    text = clean(text)
    if not text.strip():
        return "Done, no output."
    limit = settings.WAYMARK_OBSERVATION_LENGTH
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[… {len(text) - head - tail:,} of {len(text):,} characters left out …]\n{text[-tail:]}"
