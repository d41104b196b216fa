"""When the model of a run is out of reach: its user's stand-in answers for the rest of it, and the chat says so."""

from contextlib import ExitStack
from dataclasses import dataclass
from uuid import UUID, uuid5

import structlog
from django.core.exceptions import ImproperlyConfigured

from agents.connections import Choice, choice_of
from agents.engine.assemble import Summons
from agents.engine.cells import stand_in_cell
from agents.engine.journal import Cell
from agents.engine.notices import write
from agents.live.announce import cell_posted
from agents.live.stream import publish
from agents.providers import pool
from agents.providers.base import Provider, ProviderError
from memory.pool import orm

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StandIn:
    """Called once the chosen model has failed for good or for longer; there is only one who stands in.

    leased: what the connection of the stand-in is closed with.
    """

    summons: Summons
    run_id: UUID
    leased: ExitStack

    def __call__(self, error: ProviderError) -> tuple[Choice, Provider] | None:
        """Change the run's choice. None: there is nobody else, or nobody who could."""
        choice, first = self._choice(), self.summons.choice
        if choice is None:
            return None
        provider = self.leased.enter_context(pool.lease(choice.endpoint))
        self.summons.choice = choice
        log.warning("another model stands in", instead_of=first.model, model=choice.model, error=error.message)
        self._tell(stand_in_cell(uuid5(self.run_id, "stand-in"), first.name, choice.name, error.message))
        return choice, provider

    def _choice(self) -> Choice | None:
        connection = self.summons.stand_in
        if connection is None or connection.lacks_tools:
            return None
        try:
            choice = choice_of(connection, staff=self.summons.is_staff)
        except ImproperlyConfigured:
            log.warning("the key of the stand-in cannot be read")
            return None
        first = self.summons.choice
        is_same = (choice.endpoint, choice.model) == (first.endpoint, first.model)
        return None if is_same else choice

    def _tell(self, cell: Cell) -> None:
        """One line for a run, however often it comes to this."""
        thread = self.summons.thread
        with orm():
            is_new = bool(write(thread.pk, self.run_id, [cell]))
        if is_new:
            publish(thread.pk, thread.user_id, cell_posted(self.run_id, cell))
