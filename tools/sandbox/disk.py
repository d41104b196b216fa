"""The room that is left on the disk of the workspaces. The database may lie on the same one, and stops when it is full:
so long before that nothing is written there for agents any more."""

from pathlib import Path
from typing import Final

from django.conf import settings

from memory.disk import free

NEARLY_FULL: Final = "The disk of this server is nearly full; nothing more is written until its operator has made room."


def is_nearly_full() -> bool:
    """Whether less than WAYMARK_DISK_RESERVE bytes are left there."""
    place = Path(settings.WAYMARK_WORKSPACES)
    while not place.exists():
        place = place.parent
    reserve: int = settings.WAYMARK_DISK_RESERVE
    return free(place) < reserve
