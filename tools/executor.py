"""From a model's call to its result: validate, run, tell. The loop knows none of it."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Protocol
from uuid import UUID

import structlog
from pydantic import ValidationError

from memory.messages import ToolUse
from memory.pool import DATABASE_AWAY, orm, standing_still_is_away
from memory.text import clean
from tools.attempts import Attempt, Result
from tools.base import UNCERTAIN, BrokeOff, Effect, HowFar, ToolContext, ToolError
from tools.cancel import Cancelled, CancelToken
from tools.parallel import at_once, times_of
from tools.registry import AnyTool, why_off

log = structlog.get_logger(__name__)


class Recorder(Protocol):
    """Whoever keeps the journal.

    may_start: raises when no call may begin any more.
    local: runs an effect in our database and commits it together with its outcome.
    progressed: a call says how far it is; never raises.
    """

    def may_start(self) -> None: ...
    def local(self, attempt: Attempt, effect: Callable[[], Result]) -> Result: ...
    def progressed(self, attempt: Attempt, progress: HowFar) -> None: ...


@dataclass(frozen=True, slots=True)
class Executor:
    """Runs the calls of one run, on behalf of one user."""

    tools: Mapping[str, AnyTool]
    user_id: int
    thread_id: UUID
    run_id: UUID
    cancel: CancelToken
    recorder: Recorder
    offers: Callable[[str], bool]
    """Whether a tool is offered as things stand now."""
    last_look: Callable[[Attempt], Result | None]
    """Answers a call that is about to run and may not any more."""
    sources: Sequence[str] = ()
    """The mark of the run, which grows as it reads (`memory.marks`)."""

    def prepare(self, calls: Sequence[ToolUse], step: int) -> list[Attempt]:
        """Validate the calls of one reply. The ids are deterministic, so that a lost commit can be looked up."""
        return [
            self.validate(call, position, uuid.uuid5(self.run_id, f"{step}/{position}"))
            for position, call in enumerate(calls)
        ]

    def run(self, attempts: Sequence[Attempt]) -> Iterator[Result]:
        """Run attempts, those that may at the same time, and yield results as they come. The result of a local tool
        is recorded already. When the run is stopped, attempts that were not begun have no result.

        Raises:
            Cancelled: the run was stopped, and what was begun has its result.
            LeaseLost: the run is not ours any more.
        """
        for alone, group in groupby(attempts, key=lambda attempt: bool(attempt.problem) or attempt.alone):
            for batch in ([each] for each in group) if alone else [list(group)]:
                self.recorder.may_start()
                refused = [result for each in batch if not each.problem and (result := self.last_look(each))]
                yield from refused
                yield from self._run([each for each in batch if all(each is not result.attempt for result in refused)])

    def _run(self, batch: Sequence[Attempt]) -> Iterator[Result]:
        if not batch:
            return
        first = batch[0]
        if first.problem or first.tool is None:
            yield first.fails(first.problem)
        elif first.effect is Effect.LOCAL:
            yield self._local(first)
        else:
            calls = [(partial(self._guarded, each), *times_of(each.tool)) for each in batch if each.tool]
            for place, result in at_once(calls, self.cancel, self.recorder.may_start):
                yield result or self._left_behind(batch[place])

    def _local(self, attempt: Attempt) -> Result:
        try:
            return self.recorder.local(attempt, lambda: self._effect(attempt))
        except ToolError as error:
            return attempt.fails(str(error), error.sources)

    def _effect(self, attempt: Attempt) -> Result:
        """Whatever a local tool raises undoes its transaction, so the model can be told; a lost database cannot."""
        try:
            with standing_still_is_away():
                return self._call(attempt, self.cancel)
        except (ToolError, Cancelled, *DATABASE_AWAY):
            raise
        except Exception as error:
            log.exception("tool failed", tool=attempt.call.name)
            raise ToolError(f"The tool broke off: {_how(error)}.") from error

    def _guarded(self, attempt: Attempt, stop: CancelToken) -> Result:
        try:
            return self._call(attempt, stop)
        except ToolError as error:
            return attempt.fails(str(error), error.sources)
        except Cancelled:
            return attempt.stopped(stop.reason)
        except BrokeOff as error:
            log.warning("tool broke off", tool=attempt.call.name, how=str(error))
            return attempt.broke_off(str(error), error.said, error.sources)
        except Exception as error:
            log.exception("tool failed", tool=attempt.call.name)
            return attempt.broke_off(_how(error))

    def _left_behind(self, attempt: Attempt) -> Result:
        assert attempt.tool is not None
        if not self.cancel.is_set():
            return attempt.broke_off(f"timed out after {attempt.tool.timeout_seconds:g} s")
        why = self.cancel.reason
        return attempt.broke_off(why) if attempt.effect in UNCERTAIN else attempt.stopped(why)

    def _call(self, attempt: Attempt, stop: CancelToken) -> Result:
        assert attempt.tool is not None
        return attempt.done(attempt.tool.run(attempt.arguments, self.context(attempt, stop)))

    def context(self, attempt: Attempt, stop: CancelToken) -> ToolContext:
        tell = partial(self.recorder.progressed, attempt)
        whose = self.user_id, self.thread_id, self.run_id, attempt.action_id
        return ToolContext(*whose, stop, tuple(self.sources), self.offers, tell)

    def validate(self, call: ToolUse, position: int, action_id: UUID) -> Attempt:
        if call.name not in self.tools:
            with orm():
                why = why_off(self.user_id, call.name)
            if why:
                return Attempt(action_id, position, call, None, None, f"{why} Nothing was done.")
        return validated(self.tools, call, position, action_id)


def validated(tools: Mapping[str, AnyTool], call: ToolUse, position: int, action_id: UUID) -> Attempt:
    """Check one call against the tools that are offered and their schemas."""
    tool = tools.get(call.name)
    if tool is None:
        offered = ", ".join(tools) or "none"
        return Attempt(action_id, position, call, None, None, f"There is no tool {call.name!r}. Tools: {offered}.")
    if call.problem:
        return Attempt(action_id, position, call, tool, None, call.problem)
    try:
        arguments: Any = tool.Arguments.model_validate(call.arguments)
    except ValidationError as error:
        return Attempt(action_id, position, call, tool, None, _explain(error))
    return Attempt(action_id, position, call, tool, arguments, "")


def _how(error: Exception) -> str:
    """What broke a tool that had not foreseen it, in words that end a sentence."""
    if isinstance(error, DATABASE_AWAY):
        return "the database went away"
    return getattr(error, "strerror", None) or "there was a fault in Waymark, of which the log has the details"


def _explain(error: ValidationError) -> str:
    lines = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()]
    return clean("The arguments are not valid, nothing was done. " + "; ".join(lines))
