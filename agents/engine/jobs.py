"""What RQ calls. Jobs carry ids, never objects."""

from uuid import UUID

from agents import decisions
from agents.engine import archiving, restarting
from agents.engine.orchestrator import work
from memory.models import ArchiveReason


def run(run_id: str) -> None:
    """Work on a run until it is settled, handed over, or somebody else's."""
    work(UUID(run_id))


def archive(thread_id: str, reason: str) -> None:
    """Archive the live session of a thread; an idle one only if it still is."""
    if reason == ArchiveReason.IDLE and not archiving.is_due(UUID(thread_id)):
        return
    archiving.archive_session(UUID(thread_id), ArchiveReason(reason), at_once=reason == ArchiveReason.BY_HAND)


def measure(thread_id: str) -> None:
    """Archive the older part of a session that has grown too long."""
    archiving.measure(UUID(thread_id))


def check(action_id: str, user_id: int | None) -> None:
    """Look up what became of a call, because its user asks, or by itself."""
    decisions.check(UUID(action_id), user_id)


def restart(run_id: str) -> None:
    """Start from the summary after a run whose history the model refused, because its user asks."""
    restarting.carry_out(UUID(run_id))
