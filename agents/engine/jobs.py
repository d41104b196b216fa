"""What RQ calls. Jobs carry ids, never objects."""

from uuid import UUID

from agents import decisions
from agents.engine.orchestrator import work


def run(run_id: str) -> None:
    """Work on a run until it is settled, handed over, or somebody else's."""
    work(UUID(run_id))


def check(action_id: str, user_id: int) -> None:
    """Look up what became of a call, because its user asks."""
    decisions.check(UUID(action_id), user_id)
