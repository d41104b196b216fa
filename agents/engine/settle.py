"""How runs end: the terminal state is committed, and whoever is to be told is."""

from dataclasses import dataclass, replace
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from agents.agentable import Agentable, agentable_of
from agents.budgets import ledger
from agents.budgets.models import Budget
from agents.engine import bell, journal
from agents.engine.cells import wait_cell, wait_id
from agents.engine.endings import Ending
from agents.engine.journal import Cell, Final, Lease, NextCall, Postponed
from agents.engine.reports import NO_REPORT, report, tell_again
from agents.engine.thinking import NOTHING_CALLED
from agents.engine.waits import end_wait
from agents.live.announce import announce_action, cell_posted, status_changed
from agents.live.events import Event, Failed
from agents.live.stream import publish
from memory.context import Context
from memory.metadata import MessageMetadata
from memory.models import WAITS, RunStatus, Source, Thread, ThreadMessage
from memory.pool import orm, orm_connection

ROOM_SECONDS = 30.0
"""How long a run waits for room in the database, at first; each further time twice as long, up to the next."""

ROOM_SECONDS_AT_MOST = 900.0


@dataclass(frozen=True, slots=True)
class Settler:
    """Commits an ending (D8), then announces it and rings for whoever goes on.

    agentable: whose run it is; None when it cannot be loaded.
    """

    thread: Thread
    agentable: Agentable | None
    lease: Lease

    def settle(self, ending: Ending) -> None:
        """
        Raises:
            LeaseLost: the run is not ours any more; nothing was written.
        """
        if ending.status in WAITS:
            self._wait(ending)
            return
        parent = self.agentable.reports_to() if self.agentable else None
        if self.agentable is None or parent is None:
            self.settle_alone(ending)
        else:
            self._end(ending, self._commit_with_report(ending, self.agentable, parent))

    def settle_alone(self, ending: Ending) -> None:
        """Settle without the hooks of the agent's kind, and without a report. Raises as `settle`."""
        self._end(ending, self._commit(ending))

    def _end(self, ending: Ending, final: Final) -> None:
        self._announce(ending, final)
        bell.ring_next(final.in_line)
        if final.next_run is not None:
            bell.announce_and_ring(self.thread, final.next_run)

    def _wait(self, ending: Ending) -> None:
        (cell,) = ending.cells
        waiting = journal.wait(self.lease, ending.status, ending.settled, ending.again_after, cell)
        too_late = waiting.metadata and ending.short_of and self._is_too_late(ending.short_of)
        self._tell_of_wait(waiting, ending.status, cell, silently=bool(too_late))

    def wait_for_room(self, lacks: str) -> None:
        """Let the run wait, because the database is short of something (`memory.pool.shortage`). That lasts until
        somebody makes room, so it is tried as often as need be, and later and later: each try may pay a model.

        Raises: as `settle`, and the errors of a database that cannot even put that on record.
        """
        run_id, status = self.lease.run_id, RunStatus.RETRY_WAIT
        with orm():
            said = ThreadMessage.objects.filter(pk=wait_id(run_id)).exclude(metadata__has_key="of")
            tries = (said.values_list("metadata__attempt", flat=True).first() or 0) + 1
        about = MessageMetadata(reason="error", retryable=True, attempt=tries)
        cell = wait_cell(run_id, f"{lacks} I go on by myself once there is room.", about)
        seconds = min(ROOM_SECONDS * 2 ** (tries - 1), ROOM_SECONDS_AT_MOST)
        self._tell_of_wait(journal.wait(self.lease, status, None, seconds, cell), status, cell)

    def _tell_of_wait(self, waiting: Postponed, status: RunStatus, cell: Cell, *, silently: bool = False) -> None:
        thread, run_id = self.thread, self.lease.run_id
        bell.ring_next(waiting.in_line)
        if waiting.metadata is None:
            bell.ring(run_id)
        elif not silently:
            posted = cell_posted(run_id, replace(cell, metadata=waiting.metadata))
            publish(thread.pk, thread.user_id, posted, status_changed(run_id, status, self.lease.progress.step))

    def _is_too_late(self, budget: Budget) -> bool:
        """Whether more was allowed between the look at the budget and the wait, when nothing waited that could have
        been woken. The run then goes on."""
        with orm():
            if not ledger.has_changed(budget):
                return False
        end_wait(self.thread, self.lease.run_id, self.lease.progress.step)
        return True

    def _commit(self, ending: Ending, *, inside: bool = False) -> Final:
        return journal.final(
            self.lease,
            ending.status,
            ending.settled,
            reason=ending.reason,
            error=ending.error,
            messages=ending.messages,
            cells=ending.cells,
            on=orm_connection() if inside else None,
        )

    def _commit_with_report(self, ending: Ending, agentable: Agentable, parent: Thread) -> Final:
        """The report is part of the end: a crash loses both or neither."""
        words = ending.report.strip() or NO_REPORT

        def attempt() -> Final:
            with orm(), transaction.atomic():
                final = self._commit(ending, inside=True)
                if agentable.settled(ending.status, words, ending.again_after):
                    report(agentable, parent, words)
            return final

        def landed() -> Final | None:
            if final := journal.final_landed(self.lease, ending.status):
                tell_again(agentable, parent)
            return final

        return journal.surely(attempt, landed)

    def _announce(self, ending: Ending, final: Final) -> None:
        thread, run_id = self.thread, self.lease.run_id
        end = status_changed(run_id, ending.status, self.lease.progress.iterations, final.cost)
        publish(thread.pk, thread.user_id, *(_last_word(run_id, cell) for cell in ending.cells), end)
        if final.withdrawn:
            with orm():
                for action_id in final.withdrawn:
                    announce_action(thread, action_id)


def _last_word(run_id: UUID, cell: Cell) -> Event:
    if cell.source != Source.ERROR:
        return cell_posted(run_id, cell)
    return Failed(run=run_id, message=cell.id, text=cell.content, retryable=bool(cell.metadata.get("retryable")))


def give_up(run_id: UUID, ending: Ending) -> None:
    """End a run for which nothing can be assembled (a key that is gone, a broken setting) where its user sees it."""
    lease = journal.claim(run_id, NextCall("", ""), Context(""))
    if lease is None:
        return
    if lease.progress.cancelling:
        ending = Ending.stopped(run_id, NOTHING_CALLED)
    with orm():
        thread = Thread.objects.get(pk=lease.thread_id)
        agentable = _whose(thread)
    # Where the history ends is not known, so it stays as it is.
    Settler(thread, agentable, lease).settle(replace(ending, settled=NOTHING_CALLED, messages=()))


def _whose(thread: Thread) -> Agentable | None:
    try:
        return agentable_of(thread)
    except (LookupError, ValueError, ObjectDoesNotExist):
        return None
