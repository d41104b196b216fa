"""Servers that are programs on this machine: whose they may be, and which (threat T12)."""

from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.models import User


def startable(user: User) -> list[list[str]]:
    """The commands that a user may have as servers: of staff those that the operator has listed, word for word."""
    return list(settings.WAYMARK_MCP_COMMANDS) if user.is_staff and user.is_active else []


def may_start(user: User, argv: Sequence[str]) -> bool:
    return [*argv] in startable(user)
