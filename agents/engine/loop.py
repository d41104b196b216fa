"""CoreLoop: think, act, repeat. Plain Python; whoever drives it persists and publishes what it yields."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.engine.limits import Limiter
from agents.providers.base import Reply, TextDelta, ThinkingDelta
from memory.messages import Message, ToolUse


@dataclass(frozen=True, slots=True)
class Replied:
    """The model's whole reply. When it asks for tools they run as soon as the driver comes back for more."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Acted:
    """All calls of the last reply are answered. `last`: the loop ends here, no model call follows."""

    last: bool


type LoopEvent = TextDelta | ThinkingDelta | Replied | Acted


class Results(Protocol):
    """The answers to the calls of one reply, in order; `said` is true when one of them spoke to the user."""

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def said(self) -> bool: ...


@dataclass(slots=True)
class CoreLoop:
    """
    think: calls the model on the messages so far, which it may shorten; yields deltas, returns the reply.
    act: executes the calls of one reply.
    inbox: messages that came meanwhile; they are answered in the next step.
    ends_after_message: whether speaking to the user through a tool ends the run (conversational agents).
    unanswered: calls of the last message that an earlier worker has left open; they come first.
    """

    messages: list[Message]
    think: Callable[[list[Message]], Generator[TextDelta | ThinkingDelta, None, Reply]]
    act: Callable[[Sequence[ToolUse]], Results]
    inbox: Callable[[], Sequence[Message]]
    limiter: Limiter
    ends_after_message: bool
    unanswered: Sequence[ToolUse] = ()

    def run(self) -> Generator[LoopEvent, None, None]:
        """
        Raises:
            LimitReached: the run must end although the model would go on.
        """
        calls = self.unanswered
        while True:
            if not calls:
                calls = yield from self._reply()
            if not calls:
                return
            results = self.act(calls)
            self.messages.extend(results.messages)
            last = results.said and self.ends_after_message
            yield Acted(last)
            if last:
                return
            self.limiter.after_calls()
            self.messages.extend(self.inbox())
            calls = ()

    def _reply(self) -> Generator[LoopEvent, None, Sequence[ToolUse]]:
        self.limiter.before_step(len(self.messages))
        reply = yield from self.think(self.messages)
        self.messages.append(reply.message)
        yield Replied(reply)
        return reply.message.calls
