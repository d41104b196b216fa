"""Whose turn it is."""

from django.conf import settings
from django.contrib.auth.models import User

from memory.models import AgentRun, RunStatus


def is_full(user: User) -> bool:
    """Whether as many of the user's runs are at work as may be at once (WAYMARK_MAX_RUNNING_PER_USER)."""
    most: int = settings.WAYMARK_MAX_RUNNING_PER_USER
    at_work = AgentRun.objects.for_user(user).filter(status__in=(RunStatus.RUNNING, RunStatus.CANCELLING))
    return bool(most) and at_work.count() >= most
