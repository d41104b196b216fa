"""The runs that this process holds: renewed together, stopped by name, told when the process shuts down."""

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import psycopg
import structlog
from django.conf import settings

from agents.engine import journal
from agents.engine.journal import Lease, LeaseLost, Progress
from tools.cancel import BY_USER, LOST, SHUT_DOWN, CancelToken

log = structlog.get_logger(__name__)

# A worker stops by itself this long before its lease runs out, by its own monotonic clock (invariant I5). Seconds.
SAFETY_MARGIN = 6.0


@dataclass(slots=True)
class Held:
    """A lease with the local deadline up to which its holder may act.

    busy_until: when what is done right now, which nothing can interrupt, must have ended; its lease is not renewed
    beyond, so that a worker that hangs loses it as a dead one does.
    """

    lease: Lease
    cancel: CancelToken
    until: float
    lost: bool = False
    busy_until: float = math.inf

    @property
    def progress(self) -> Progress:
        return self.lease.progress

    def check(self) -> None:
        """
        Raises:
            LeaseLost: the run is not ours any more, as far as this process can tell.
            Cancelled: the run was stopped.
        """
        if self.lost or time.monotonic() >= self.until:
            self.lose()
            raise LeaseLost
        self.cancel.check()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Do something that cannot be interrupted and should take `seconds` at most."""
        self.busy_until = time.monotonic() + seconds
        try:
            yield
        finally:
            self.busy_until = math.inf

    @property
    def cut_off(self) -> bool:
        """Whether this process shuts down and waits for the run no longer: it is handed over as it stands."""
        return not self.lost and self.cancel.reason == SHUT_DOWN

    def lose(self) -> None:
        self.lost = True
        self.cancel.cancel(LOST)


@dataclass(slots=True)
class Leases:
    """Thread-safe registry. `draining` is set when the process shuts down: runs are handed over at their next step."""

    held: dict[UUID, Held] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    draining: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def hold(self, lease: Lease, cancel: CancelToken, since: float) -> Iterator[Held]:
        """Keep the lease renewed while the block runs.

        Args:
            since: when the lease was asked for, by the monotonic clock.
        """
        held = Held(lease, cancel, _deadline(since))
        with self.lock:
            self.held[lease.run_id] = held
        if lease.progress.cancelling:
            cancel.cancel(BY_USER)
        try:
            yield held
        finally:
            with self.lock:
                if self.held.get(lease.run_id) is held:  # it may have been lost, and claimed here again
                    del self.held[lease.run_id]

    def stop(self, run_id: UUID) -> None:
        """Cancel a run if it is held here."""
        held = self.held.get(run_id)
        if held is not None:
            held.cancel.cancel(BY_USER)

    def renew(self) -> None:
        """Renew every lease; runs whose lease is gone are cancelled and marked as lost."""
        all_held = [held for held in self._all() if not held.lost]
        if not all_held:
            return
        asked_at = time.monotonic()
        try:
            ours = journal.renew([held.lease for held in all_held])
        except psycopg.Error as error:
            log.warning("leases not renewed", error=str(error))
        else:
            for held in all_held:
                renewal = ours.get(held.lease.run_id)
                if renewal is None:
                    held.lose()
                    continue
                if renewal.renewed:
                    held.until = _deadline(asked_at)
                if renewal.cancelling:
                    held.cancel.cancel(BY_USER)

    def cut_off(self) -> None:
        """Let every run stop where it is, to be handed over."""
        for held in self._all():
            held.cancel.cancel(SHUT_DOWN)

    def give_up(self) -> list[UUID]:
        """Give back the runs whose threads have not ended yet; returns those that others may take up now. What these
        threads still write finds no lease."""
        left = []
        for held in self._all():
            held.lose()
            try:
                journal.give_back(held.lease)
            except psycopg.Error as error:
                log.warning("run left until its lease is over", run=str(held.lease.run_id), error=str(error))
            else:
                left.append(held.lease.run_id)
        return left

    def fence_off(self) -> None:
        """Stop the runs that hang, and those whose lease is about to run out, by this process's own clock (invariant
        I5). It never waits: the database may be the very thing that does not answer."""
        now = time.monotonic()
        for held in self._all():
            if min(held.busy_until, held.until) <= now:
                held.lose()

    def _all(self) -> list[Held]:
        with self.lock:
            return list(self.held.values())


def _deadline(since: float) -> float:
    lease: float = settings.WAYMARK_LEASE_SECONDS
    return since + lease - min(SAFETY_MARGIN, lease / 3)


leases = Leases()
