"""What makes one agent run: assemble → claim → recover → drive → settle.

Everything with a database, queue or socket is here and in the helpers; the algorithm is `CoreLoop`.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import structlog

from agents.agentable import FEED, UNPROMPTED
from agents.budgets.purse import Purse, Unpriced
from agents.budgets.room import OutOfBudget
from agents.budgets.worst import NOTHING
from agents.engine import archiving, bell, journal, payment
from agents.engine.assemble import Summons, retry_policy, summon
from agents.engine.endings import Ending
from agents.engine.gates import GivesWay, Parked
from agents.engine.journal import Settled
from agents.engine.leases import Held, leases
from agents.engine.limits import Limiter, LimitReached
from agents.engine.loop import Acted, CoreLoop, LoopEvent, Replied
from agents.engine.recovery import inbox, recover
from agents.engine.settle import ROOM_SECONDS, Settler, give_up
from agents.engine.shortening import Shortening
from agents.engine.standing_in import StandIn
from agents.engine.steps import Steps
from agents.engine.thinking import CallFailed, Thinker
from agents.live.announce import announce_status, status_changed
from agents.live.events import Think
from agents.live.stream import disown, publish
from agents.providers import pool as provider_pool
from agents.providers.base import Provider, TextDelta
from memory import quarantine, transcript
from memory.attachments import loader
from memory.degrade import Remedy
from memory.messages import Message, ToolUse
from memory.models import WAITS, RunStatus, Source, ThreadMessage
from memory.pictures import Pictures
from memory.pool import DATABASE_AWAY, orm, shortage
from memory.secrets import Unreadable
from memory.transcript import Transcript
from tools.cancel import BY_USER, Cancelled, CancelToken
from tools.recorded import recorded

log = structlog.get_logger(__name__)


# A run whose worker has died this often is given up: whatever it does kills workers.
MAX_RECOVERIES = 5


def work(run_id: UUID) -> None:
    """Work on a run until it is settled, handed over, or turns out to be somebody else's."""
    if leases.draining.is_set():
        bell.ring(run_id)
        return
    with structlog.contextvars.bound_contextvars(run=str(run_id)):
        summons = _summoned(run_id)
        if summons is None:
            return
        since = time.monotonic()
        lease = journal.claim(run_id, summons.next_call, summons.context)
        if lease is None:
            return
        cancel = CancelToken()
        with (
            structlog.contextvars.bound_contextvars(thread=str(lease.thread_id), fence=lease.fence),
            leases.hold(lease, cancel, since) as held,
        ):
            Orchestrator(summons, held).drive()


def _summoned(run_id: UUID) -> Summons | None:
    """None: there is nothing to claim, or nothing that could work on it, and the run is given up."""
    try:
        if summons := summon(run_id):
            summons.keep_prompt()
        return summons
    except DATABASE_AWAY:
        raise
    except Unreadable as error:
        log.warning("the key of the model cannot be read", error=str(error))
        give_up(run_id, Ending.without_key())
    except Exception:
        log.exception("run cannot be assembled")
        give_up(run_id, Ending.broken())
    payment.let_go(run_id)
    return None


class HandedOver(Exception):
    """This worker shuts down; another goes on from here."""


@dataclass(slots=True)
class Orchestrator:
    """Drives one claimed run."""

    summons: Summons
    held: Held
    purse: Purse | None = None

    def drive(self) -> None:
        """Run the loop and settle, whatever happens."""
        lease, progress, summons = self.held.lease, self.held.progress, self.summons
        how = "run taken up again" if progress.resumed else "run started"
        log.info(how, trigger=summons.trigger, model=summons.choice.model, step=progress.step, lost=progress.recoveries)
        announce_status(summons.thread, lease.run_id, RunStatus.RUNNING, progress.step)
        with self._left_to_others():
            try:
                ending = self._settled(self._ending())
            except HandedOver:
                # Of a model call that was cut off nobody knows what it has cost: it stays open, as after a death.
                (journal.give_back if self.held.cut_off else journal.hand_over)(lease)
                bell.ring(lease.run_id)
                log.info("run handed over", step=progress.step)
            except Parked as parked:
                announce_status(summons.thread, lease.run_id, RunStatus.WAITING_APPROVAL, progress.step)
                bell.ring_next(parked.in_line)
                log.info("run waits for approval", step=progress.step)
            else:
                log.info("run settled", status=ending.status, reason=ending.reason, step=progress.step)
                if ending.status == RunStatus.SUCCEEDED:
                    window, has_sessions = summons.choice.capabilities.context_length, summons.agentable.has_sessions
                    usage, is_over = ending.settled.usage, summons.context_type == FEED
                    archiving.watch(summons.thread, usage, window, has_sessions=has_sessions, is_over=is_over)
        if progress.metered:
            payment.let_go(lease.run_id)

    @contextlib.contextmanager
    def _left_to_others(self) -> Iterator[None]:
        """Without a word ends only what is not ours to end: a lost lease, or a database that is away (the run is then
        taken up again when its lease is over). One that answers, and is only short of something, keeps the run."""
        try:
            yield
        except journal.LeaseLost:
            log.warning("lease lost", step=self.held.progress.step)
            disown(self.summons.thread.pk)
        except DATABASE_AWAY as error:
            disown(self.summons.thread.pk)
            if not (lacks := shortage(error)) or not self._waits_for_room(lacks):
                log.warning("database away, run left for its next worker", error=str(error))

    def _waits_for_room(self, lacks: str) -> bool:
        """Let go of the run until there is room, and say so if there is room for that. False: not even that."""
        settler = Settler(self.summons.thread, self.summons.agentable, self.held.lease)
        try:
            with contextlib.suppress(*DATABASE_AWAY):
                settler.wait_for_room(lacks)
                return True
            journal.give_back(self.held.lease, ROOM_SECONDS)
        except (journal.LeaseLost, *DATABASE_AWAY):
            return False
        finally:
            log.error("run waits for room in the database", lacks=lacks, step=self.held.progress.step)
        return True

    def _settled(self, ending: Ending) -> Ending:
        """Settle. When a hook of the agent's kind fails then, the run ends as broken without it: taken up again it
        would only fail once more, and cost again."""
        if self.held.lost:
            raise journal.LeaseLost
        settler = Settler(self.summons.thread, self.summons.agentable, self.held.lease)
        try:
            settler.settle(ending)
        except (journal.LeaseLost, *DATABASE_AWAY):
            raise
        except Exception:
            log.exception("run cannot be settled")
            ending = dataclasses.replace(Ending.broken(), settled=ending.settled)
            settler.settle_alone(ending)
        return ending

    def _ending(self) -> Ending:
        """Open what the run needs and drive it; what nobody has foreseen is an ending as well."""
        progress, thread, endpoint = self.held.progress, self.summons.thread, self.summons.choice.endpoint
        if progress.recoveries > MAX_RECOVERIES:
            return Ending.crashed()
        if self.summons.choice.lacks_tools and self.summons.tools:
            return Ending.without_tools(self.summons.choice.name)
        try:
            if progress.metered:
                self.purse = payment.purse_of(self.summons, self.held)
            with (
                contextlib.ExitStack() as leased,
                transcript.opened(thread.pk, thread.from_seq, recorded, open_reply=progress.open_step) as history,
            ):
                provider = leased.enter_context(provider_pool.lease(endpoint))
                stand_in = StandIn(self.summons, self.held.lease.run_id, leased)
                steps = Steps(self.summons, self.held, self._thinker(provider, history, stand_in))
                ending = self._run(steps, history)
                # A run that is to stop does not wait first: it would be taken up again at once, to wait again.
                waits = ending.status in WAITS and self.held.cancel.reason == BY_USER
                return Ending.stopped(self.held.lease.run_id, steps.thinker.settled) if waits else ending
        except (HandedOver, Parked, journal.LeaseLost, *DATABASE_AWAY):
            raise
        except Exception:
            log.exception("run failed")
            return Ending.broken(self.purse.open if self.purse else NOTHING)

    def _run(self, steps: Steps, history: Transcript) -> Ending:
        """Recover, then go on step by step; every foreseen way in which a run may end becomes data."""
        progress, thinker = self.held.progress, steps.thinker
        progress.next_seq = history.next_seq
        try:
            unanswered = recover(steps, history) if progress.resumed or progress.decided else ()
            for event in self._loop(steps, history.messages, unanswered).run():
                self._handle(event, steps)
        except Cancelled:
            if self.held.cut_off:
                raise HandedOver from None
            return Ending.stopped(self.held.lease.run_id, thinker.settled)
        except GivesWay:
            return Ending.gave_way(thinker.settled)
        except LimitReached as limit:
            return Ending.limited(limit, thinker.settled)
        except OutOfBudget as out:
            return Ending.out_of_budget(self.held.lease.run_id, out, thinker.settled)
        except Unpriced:
            return Ending.unpriced(thinker.choice, thinker.settled)
        except CallFailed as failed:
            reschedules = self.summons.agentable.reschedules
            return Ending.failed_call(self.held.lease.run_id, failed, thinker.settled, reschedules=reschedules)
        ending = Ending.done(steps.last_reply, thinker.settled)
        return ending.unsaid() if self._speaks_to_nobody() else ending

    def _speaks_to_nobody(self) -> bool:
        """Only what a run that nobody has asked for, or joined, says through a tool reaches its user (mission A12)."""
        if self.summons.context_type not in UNPROMPTED:
            return False
        with orm():
            joined = ThreadMessage.objects.filter(run=self.held.lease.run_id, source=Source.USER)
            return not joined.exists()

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
                if self.held.progress.metered and self.purse is None:
                    self.purse = steps.thinker.purse = payment.purse_of(self.summons, self.held)

    def _loop(self, steps: Steps, messages: list[Message], unanswered: Sequence[ToolUse]) -> CoreLoop:
        limits, progress = self.summons.agentable.limits(self.summons.context_type), self.held.progress
        return CoreLoop(
            messages=messages,
            think=Shortening(self.summons, self.held, steps.thinker).agent_call,
            act=steps.act,
            inbox=partial(inbox, steps),
            limiter=Limiter(**dataclasses.asdict(limits), guard=progress.guard, step=progress.step),
            ends_after_message=self.summons.converses,
            unanswered=unanswered,
        )

    def _thinker(self, provider: Provider, history: Transcript, stand_in: StandIn) -> Thinker:
        summons = self.summons
        return Thinker(
            summons.choice,
            summons.system,
            summons.specs,
            self.held.cancel,
            on_failure=self._try_again,
            on_remedy=self._quarantine,
            provider=provider,
            policy=retry_policy(),
            stand_in=stand_in,
            waited=self.held.progress.retries,
            purse=self.purse,
            memo=history.memo,
            prices=summons.prices,
            grammar=history.grammar,
            pictures=Pictures(summons.choice.can_see),
            load=loader(summons.thread.user_id),
        )

    def _try_again(self, failed: Settled, pause: float) -> None:
        """A model call will be repeated: the text so far is void, for the record and for those who look on, who see
        that the pause is the provider's."""
        lease, thread, step = self.held.lease, self.summons.thread, self.held.progress.step
        journal.call_again(lease, failed, self.summons.next_call)
        publish(thread.pk, thread.user_id, status_changed(lease.run_id, RunStatus.RUNNING, step, pause=pause))

    def _quarantine(self, remedy: Remedy) -> None:
        """The model's server took the history only when it was made plainer: it stays so from now on."""
        lease = self.held.lease
        places = quarantine.culprits(lease.thread_id, remedy)
        log.warning("history entries put in quarantine", rung=remedy.rung, places=places)
        journal.quarantine(lease, places, remedy.rung)
