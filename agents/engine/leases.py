"""The runs that this process holds: renewed together, stopped by name, told when the process shuts down."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from django.conf import settings
from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from agents.engine import journal
from agents.engine.journal import Lease
from tools.cancel import CancelToken

log = structlog.get_logger(__name__)

# A worker stops by itself this long before its lease runs out, by its own monotonic clock (invariant I5). Seconds.
SAFETY_MARGIN = 6.0


@dataclass(slots=True)
class Held:
    lease: Lease
    cancel: CancelToken
    until: float
    lost: bool = False


@dataclass(slots=True)
class Leases:
    """Thread-safe registry. `draining` is set when the process shuts down: runs are handed over at their next step."""

    held: dict[UUID, Held] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    draining: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def hold(self, lease: Lease, cancel: CancelToken) -> Iterator[Held]:
        """Keep the lease renewed while the block runs."""
        held = Held(lease, cancel, _deadline(time.monotonic()))
        with self.lock:
            self.held[lease.run_id] = held
        if lease.cancelling:
            cancel.cancel("stopped")
        try:
            yield held
        finally:
            with self.lock:
                self.held.pop(lease.run_id, None)

    def stop(self, run_id: UUID) -> None:
        """Cancel a run if it is held here."""
        held = self.held.get(run_id)
        if held is not None:
            held.cancel.cancel("stopped")

    def renew(self) -> None:
        """Renew every lease; runs whose lease is gone or about to run out are cancelled and marked as lost."""
        with self.lock:
            all_held = list(self.held.values())
        if not all_held:
            return
        asked_at = time.monotonic()
        try:
            ours = journal.renew([held.lease for held in all_held])
        except (OperationalError, PoolTimeout) as error:
            log.warning("leases not renewed", error=str(error))
            _fence_off(held for held in all_held if held.until <= time.monotonic())
            return
        for held in all_held:
            held.until = _deadline(asked_at)
            if ours.get(held.lease.run_id):
                held.cancel.cancel("stopped")
        _fence_off(held for held in all_held if held.lease.run_id not in ours)


def _fence_off(lost: Iterator[Held]) -> None:
    for held in lost:
        held.lost = True
        held.cancel.cancel("lease lost")


def _deadline(since: float) -> float:
    lease: float = settings.WAYMARK_LEASE_SECONDS
    return since + lease - min(SAFETY_MARGIN, lease / 3)


leases = Leases()
