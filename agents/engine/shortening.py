"""When a model says that the conversation is too long for it (case PRV-10).

What is sent is made shorter and sent again, at most twice: first the older turns become an archive; then all but the
last, and results and texts are cut for this run only. What no means makes shorter ends the run with the name of what
is too large.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from agents.engine import archiving
from agents.engine.assemble import Summons, system_prompt
from agents.engine.leases import Held
from agents.engine.thinking import CallFailed, Thinker
from agents.providers.base import ProviderError, Reply, TextDelta, ThinkingDelta, Trouble
from memory import transcript
from memory.archive import Holder
from memory.compaction import characters, clipped
from memory.messages import Message
from memory.models import Thread
from memory.pool import orm
from memory.recall import last_summaries
from memory.text import clip
from tools.recorded import recorded

# What stays of each result and text in the second try. Characters.
CLIPPED = 1_000
# A share of the session that no turn is as short as: only the last one is kept.
LAST_TURN = 1e-9


@dataclass(frozen=True, slots=True)
class Shortening:
    """The calls of a Thinker, for conversations that may be longer than its model takes."""

    summons: Summons
    held: Held
    thinker: Thinker

    def agent_call(self, messages: list[Message]) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        """As `Thinker.agent_call`; `messages` are shortened in place.

        Raises:
            CallFailed: for a conversation that stays too long, with words about its largest message.
        """
        shorter = self._shorter(messages)
        while True:
            try:
                return (yield from self.thinker.agent_call(messages))
            except CallFailed as failed:
                if failed.error.trouble is not Trouble.TOO_LONG:
                    raise
                following = next(shorter, None)
                if following is None:
                    raise CallFailed(_named(failed.error, messages), failed.verdict) from failed
            self.thinker.begin_anew()
            messages[:] = following

    def _shorter(self, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """What to send instead, made when it is asked for; at most twice."""
        sent = list(messages)
        if newest := self._archived(archiving.KEPT):
            yield newest
            sent, messages = newest, self._archived(LAST_TURN) or newest
        shorter = clipped(messages, CLIPPED)
        if shorter != sent:
            yield shorter

    def _archived(self, share: float) -> list[Message] | None:
        """The newest turns; the older ones are archived and stand as a summary in the prompt. None: they could not
        be, or there are none."""
        lease, summons = self.held.lease, self.summons
        if not summons.agentable.has_sessions:
            return None
        holder = Holder(lease.run_id, lease.token)
        if not archiving.shorten_session(holder, lease.thread_id, self.held.cancel, share):
            return None
        with orm():
            thread = Thread.objects.get(pk=lease.thread_id)
        summaries = last_summaries(lease.thread_id)
        self.thinker.system = system_prompt(
            summons.agentable, summons.context_type, summons.standing, summaries, summons.time_zone
        )
        return transcript.load(lease.thread_id, thread.from_seq, recorded)


def _named(error: ProviderError, messages: Sequence[Message]) -> ProviderError:
    """The same error, saying which message is to blame."""
    largest = max(messages, key=characters)
    whose = {"user": "Your message", "tool": "A tool's result"}.get(largest.role, "The agent's answer")
    begins = clip(largest.words, 60)
    size = f"{whose} “{begins}” alone has {characters(largest):,} characters."
    return ProviderError(error.trouble, f"{error.message} {size}", retryable=False, usage=error.usage)
