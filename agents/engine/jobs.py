"""What RQ calls. Jobs carry ids, never objects."""

from uuid import UUID

from agents.engine.orchestrator import work


def run(run_id: str) -> None:
    """Work on a run until it is settled, handed over, or somebody else's."""
    work(UUID(run_id))
