"""What a person prefers, kept on their assistant."""

import zoneinfo
from datetime import time

from django.db import transaction

from agents.engine.waits import end_waits_for_budgets
from agents.models import UserAgent
from agents.refusals import Refused
from goals.schedules import rezone
from memory.text import clip

NAME_LENGTH = 150


type Hours = tuple[time | None, time | None]


def save_profile(assistant: UserAgent, name: str, time_zone: str, quiet: Hours = (None, None)) -> None:
    """
    Args:
        quiet: from when to when agents begin nothing by themselves, by the user's wall; both or neither.

    Raises:
        Refused: the time zone is unknown.
    """
    if time_zone not in zoneinfo.available_timezones():
        raise Refused("time_zone", "This time zone is not known.")
    assistant.time_zone = time_zone
    assistant.quiet_from, assistant.quiet_to = quiet
    assistant.user.first_name = clip(name, NAME_LENGTH)
    with transaction.atomic():
        assistant.save(update_fields=["time_zone", "quiet_from", "quiet_to"])
        assistant.user.save(update_fields=["first_name"])
    end_waits_for_budgets(assistant.user)
    rezone(assistant.user)


def adopt_time_zone(assistant: UserAgent, time_zone: str) -> None:
    """Take over the browser's zone, unless the person has chosen one already or the name means nothing."""
    is_unset = assistant.time_zone == UserAgent._meta.get_field("time_zone").default
    if is_unset and time_zone in zoneinfo.available_timezones():
        assistant.time_zone = time_zone
        assistant.save(update_fields=["time_zone"])
        rezone(assistant.user)


def save_theme(assistant: UserAgent, theme: str) -> None:
    """
    Raises:
        Refused: not a theme.
    """
    if theme not in UserAgent.Theme.values:
        raise Refused("theme", "This theme does not exist.")
    assistant.theme = theme
    assistant.save(update_fields=["theme"])


def finish_welcome(assistant: UserAgent) -> None:
    """The first run was finished or skipped; home no longer leads there."""
    assistant.welcomed = True
    assistant.save(update_fields=["welcomed"])
