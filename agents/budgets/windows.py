"""When the windows of budgets begin and end, in the zone of their user."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agents.budgets.models import Window


def began(window: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return when the window of `now` began; None for one that never begins anew.

    In UTC, because Python takes no local time in a gap or a fold of its zone for equal to one of another zone.
    """
    if window not in (Window.DAY, Window.MONTH):
        return None
    midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return (midnight if window == Window.DAY else midnight.replace(day=1)).astimezone(UTC)


def ends(window: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return when the next window begins; None when there is none."""
    begins = began(window, now, zone)
    if begins is None:
        return None
    within_the_next = begins + (timedelta(days=1, hours=3) if window == Window.DAY else timedelta(days=32))
    return began(window, within_the_next, zone)
