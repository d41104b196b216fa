"""What makes one agent run: claim → assemble → drive the loop → settle.

Everything with a database, queue or socket is here and in the helpers; the algorithm is `CoreLoop`.
"""

import time
from dataclasses import dataclass
from uuid import UUID

import psycopg
import structlog
from django.db import InterfaceError, OperationalError

from agents.engine import bell, journal
from agents.engine.assemble import Summons, summon
from agents.engine.journal import Settled
from agents.engine.leases import Held, leases
from agents.engine.limits import Limiter, LimitReached
from agents.engine.loop import Acted, CoreLoop, LoopEvent, Replied
from agents.engine.settle import Ending, Settler, give_up
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


# The database went away, by the hot path or by the ORM: a commit may or may not have happened, so nobody goes on here.
DATABASE_AWAY = (psycopg.OperationalError, OperationalError, InterfaceError)

# A run whose worker has died this often is given up: whatever it does kills workers.
MAX_RECOVERIES = 5


def work(run_id: UUID) -> None:
    """Work on a run until it is settled, handed over, or turns out to be somebody else's."""
    if leases.draining.is_set():
        bell.ring(run_id)
        return
    with structlog.contextvars.bound_contextvars(run=str(run_id)):
        try:
            summons = summon(run_id)
        except DATABASE_AWAY:
            raise
        except Exception:
            log.exception("run cannot be assembled")
            give_up(run_id)
            return
        if summons is None:
            return
        since = time.monotonic()
        lease = journal.claim(run_id, summons.next_call, summons.context)
        if lease is None:
            return
        cancel = CancelToken()
        with (
            structlog.contextvars.bound_contextvars(thread=str(lease.thread_id)),
            leases.hold(lease, cancel, since) as held,
        ):
            Orchestrator(summons, held).drive()


class HandedOver(Exception):
    """This worker shuts down; another goes on from here."""


@dataclass(slots=True)
class Orchestrator:
    """Drives one claimed run."""

    summons: Summons
    held: Held

    def drive(self) -> None:
        """Run the loop and settle, whatever happens. Without a word ends only what is not ours to end: a lost lease,
        or a database that is away (the run is then taken up again when its lease is over)."""
        lease, summons = self.held.lease, self.summons
        log.info("run started", trigger=summons.trigger, model=summons.choice.model, step=lease.step)
        announce_status(summons.thread, lease.run_id, RunStatus.RUNNING, lease.step)
        try:
            ending = self._ending()
            if self.held.lost:
                raise journal.LeaseLost
            Settler(summons, lease).settle(ending)
        except HandedOver:
            journal.hand_over(lease)
            bell.ring(lease.run_id)
            log.info("run handed over", step=lease.step)
        except journal.LeaseLost:
            log.warning("lease lost", step=lease.step)
        except DATABASE_AWAY as error:
            log.warning("database away, run left for its next worker", error=str(error))
        else:
            log.info("run ended", status=ending.status, reason=ending.reason, step=lease.step)

    def _ending(self) -> Ending:
        """Drive the loop; every way in which a run may end becomes data."""
        if self.held.lease.recoveries > MAX_RECOVERIES:
            return Ending.crashed()
        try:
            with provider_pool.lease(self.summons.choice.endpoint) as provider:
                thinker = self._thinker(provider)
                return self._run(thinker, Steps(self.summons, self.held, thinker))
        except (HandedOver, journal.LeaseLost, *DATABASE_AWAY):
            raise
        except Exception:
            log.exception("run failed")
            return Ending.broken()

    def _run(self, thinker: Thinker, steps: Steps) -> Ending:
        try:
            for event in self._loop(steps).run():
                self._handle(event, steps)
            return Ending.done(steps.last_reply, thinker.settled)
        except Cancelled:
            return Ending.stopped(steps.finished, thinker.settled)
        except LimitReached as limit:
            return Ending.limited(limit, thinker.settled)
        except ProviderError as error:
            return Ending.failed_call(error, thinker.settled)

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
        history = transcript.load(lease.thread_id)
        lease.next_seq = history.next_seq
        return CoreLoop(
            messages=history.messages,
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
