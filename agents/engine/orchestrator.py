"""What makes one agent run: claim → assemble → drive the loop → settle.

Everything with a database, queue or socket is here and in the helpers; the algorithm is `CoreLoop`.
"""

from dataclasses import dataclass
from uuid import UUID

import structlog

from agents.engine import bell, journal
from agents.engine.assemble import Summons, summon
from agents.engine.journal import Settled
from agents.engine.leases import Held, leases
from agents.engine.limits import Limiter, LimitReached
from agents.engine.loop import Acted, CoreLoop, LoopEvent, Replied
from agents.engine.settle import Ending, Settler
from agents.engine.steps import Steps
from agents.engine.thinking import Thinker
from agents.live.announce import announce_status
from agents.live.events import Think
from agents.live.stream import publish
from agents.providers import pool as provider_pool
from agents.providers.base import Provider, ProviderError, TextDelta
from memory import transcript
from memory.models import RunStatus
from tools.cancel import Cancelled, CancelToken

log = structlog.get_logger(__name__)


def work(run_id: UUID) -> None:
    """Work on a run until it is settled, handed over, or turns out to be somebody else's."""
    with structlog.contextvars.bound_contextvars(run=str(run_id)):
        summons = summon(run_id)
        if summons is None:
            return
        lease = journal.claim(run_id, summons.next_call, summons.context)
        if lease is None:
            return
        cancel = CancelToken()
        with structlog.contextvars.bound_contextvars(thread=str(lease.thread_id)), leases.hold(lease, cancel) as held:
            Orchestrator(summons, held).drive()


class HandedOver(Exception):
    """This worker shuts down; another goes on from here."""


@dataclass(slots=True)
class Orchestrator:
    """Drives one claimed run."""

    summons: Summons
    held: Held

    def drive(self) -> None:
        """Run the loop and settle, whatever happens. Only a lost lease ends without a word: the run is not ours."""
        lease, summons = self.held.lease, self.summons
        log.info("run started", trigger=summons.trigger, model=summons.choice.model, step=lease.step)
        announce_status(summons.thread, lease.run_id, RunStatus.RUNNING, lease.step)
        try:
            with provider_pool.lease(summons.choice.endpoint) as provider:
                ending = self._ending(self._thinker(provider))
            if self.held.lost:
                raise journal.LeaseLost
            Settler(summons, lease).settle(ending)
        except HandedOver:
            journal.hand_over(lease)
            bell.ring(lease.run_id)
            log.info("run handed over", step=lease.step)
        except journal.LeaseLost:
            log.warning("lease lost", step=lease.step)
        else:
            log.info("run ended", status=ending.status, reason=ending.reason, step=lease.step)

    def _ending(self, thinker: Thinker) -> Ending:
        """Drive the loop; every way in which a run may end becomes data."""
        steps = Steps(self.summons, self.held, thinker)
        try:
            for event in self._loop(steps).run():
                self._handle(event, steps)
            return Ending.done(steps.last_reply, thinker.settled, steps.said)
        except Cancelled:
            return Ending.stopped(steps.finished, thinker.settled)
        except LimitReached as limit:
            return Ending.limited(limit, thinker.settled)
        except ProviderError as error:
            return Ending.failed_call(error, thinker.settled)
        except (HandedOver, journal.LeaseLost):
            raise
        except Exception:
            log.exception("run failed")
            return Ending.broken(thinker.settled)

    def _handle(self, event: LoopEvent, steps: Steps) -> None:
        match event:
            case TextDelta():
                thread, run_id = self.summons.thread, self.held.lease.run_id
                publish(thread.pk, thread.user_id, Think(run=run_id, text=event.text))
            case Replied():
                steps.replied(event.reply)
            case Acted():
                steps.acted(event.last)
                if leases.draining.is_set() and not event.last:
                    raise HandedOver

    def _loop(self, steps: Steps) -> CoreLoop:
        limits, lease = self.summons.agentable.limits(), self.held.lease
        return CoreLoop(
            messages=transcript.load(lease.thread_id),
            think=steps.thinker.agent_call,
            act=steps.act,
            inbox=steps.inbox,
            limiter=Limiter(limits.iterations, limits.seconds, limits.same_tool, limits.history_entries, lease.step),
            ends_after_message=self.summons.converses,
        )

    def _thinker(self, provider: Provider) -> Thinker:
        summons = self.summons
        return Thinker(summons.choice, summons.system, summons.specs, self.held.cancel, self._try_again, provider)

    def _try_again(self, failed: Settled) -> None:
        """A model call will be repeated: the text so far is void, for the record and for those who look on."""
        lease = self.held.lease
        journal.call_again(lease, failed, self.summons.next_call)
        announce_status(self.summons.thread, lease.run_id, RunStatus.RUNNING, lease.step)
