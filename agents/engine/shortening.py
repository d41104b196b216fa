"""When a model says that the conversation is too long for it (case PRV-10).

What is sent is made shorter and sent again, at most twice: first the older turns become an archive, then results and
texts are cut for this run only. What no means makes shorter ends the run with the name of what is too large.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from agents.engine import archiving
from agents.engine.assemble import Summons, system_prompt
from agents.engine.leases import Held
from agents.engine.thinking import NOTHING_CALLED, Thinker
from agents.providers.base import ProviderError, Reply, TextDelta, ThinkingDelta, Trouble
from memory import transcript
from memory.archive import Holder
from memory.compaction import characters, clipped, words
from memory.messages import Message
from memory.models import Thread
from memory.pool import orm
from memory.recall import last_summaries
from memory.text import clip

# What stays of each result and text in the second try. Characters.
CLIPPED = 1_000

type Rung = Callable[[Sequence[Message]], list[Message] | None]


@dataclass(frozen=True, slots=True)
class Shortening:
    """The calls of a Thinker, for conversations that may be longer than its model takes."""

    summons: Summons
    held: Held
    thinker: Thinker

    def agent_call(self, messages: list[Message]) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        """As `Thinker.agent_call`; `messages` are shortened in place.

        Raises:
            ProviderError: for a conversation that stays too long, with words about its largest message.
        """
        rungs = iter((self._archived, self._clipped))
        while True:
            try:
                return (yield from self.thinker.agent_call(messages))
            except ProviderError as error:
                if error.trouble is not Trouble.TOO_LONG:
                    raise
                shorter = _first(rungs, messages)
                if shorter is None:
                    raise _named(error, messages) from error
            self.thinker.on_failure(self.thinker.settled)
            self.thinker.settled = NOTHING_CALLED
            messages[:] = shorter

    def _archived(self, messages: Sequence[Message]) -> list[Message] | None:
        """The newest turns; the older ones are archived and stand as a summary in the prompt."""
        lease, summons = self.held.lease, self.summons
        if not summons.agentable.has_sessions:
            return None
        holder = Holder(lease.run_id, lease.token)
        if not archiving.shorten_session(holder, lease.thread_id, summons.choice, self.held.cancel):
            return None
        with orm():
            thread = Thread.objects.get(pk=lease.thread_id)
            self.thinker.system = system_prompt(summons.agentable, last_summaries(lease.thread_id), summons.time_zone)
        return transcript.load(lease.thread_id, thread.from_seq).messages

    def _clipped(self, messages: Sequence[Message]) -> list[Message] | None:
        shorter = clipped(messages, CLIPPED)
        return shorter if shorter != list(messages) else None


def _first(rungs: Iterator[Rung], messages: Sequence[Message]) -> list[Message] | None:
    return next((shorter for rung in rungs if (shorter := rung(messages)) is not None), None)


def _named(error: ProviderError, messages: Sequence[Message]) -> ProviderError:
    """The same error, saying which message is to blame."""
    largest = max(messages, key=characters)
    whose = {"user": "Your message", "tool": "A tool's result"}.get(largest.role, "The agent's answer")
    begins = clip(words(largest), 60)
    size = f"{whose} “{begins}” alone has {characters(largest):,} characters."
    return ProviderError(error.trouble, f"{error.message} {size}", retryable=False, usage=error.usage)
