"""What goes wrong with a server in runs, for its page."""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models.functions import Now

from memory.pool import DATABASE_AWAY
from memory.text import clean, clip
from tools.mcp import loop
from tools.mcp.credentials import without_credentials
from tools.mcp.models import McpServer
from tools.mcp.transports import Target

NOTE_SECONDS: Final = 60.0
"""So often at most is a row told, by each process."""


@dataclass
class Notes:
    """Of one server, on the loop."""

    is_noted: bool = False
    noted_until: float = 0
    cleared_until: float = 0

    async def keep(self, target: Target, words: str, *, is_refused: bool = False) -> None:
        """It does not work. is_refused: it lets us not in, which a page that knows where to sign in says better."""
        if time.monotonic() > self.noted_until:
            self.is_noted, self.noted_until = True, time.monotonic() + NOTE_SECONDS
            with suppress(*DATABASE_AWAY):
                await loop.in_database(_keep, target, words, is_refused)

    async def clear(self, server_id: UUID) -> None:
        """It works; another process may have noted that it did not."""
        if self.is_noted or time.monotonic() > self.cleared_until:
            self.is_noted, self.cleared_until = False, time.monotonic() + NOTE_SECONDS
            with suppress(*DATABASE_AWAY):
                await loop.in_database(_clear, server_id)


def _keep(target: Target, words: str, is_refused: bool) -> None:
    rows = McpServer.objects.filter(pk=target.server_id)
    if is_refused:
        rows = rows.filter(sign_in=None)
    rows.update(error=clip(clean(without_credentials(words, target)), 500), checked_at=Now())


def _clear(server_id: UUID) -> None:
    McpServer.objects.filter(pk=server_id).exclude(error="").update(error="")
