"""Quiet hours: what an agent begins by itself waits until they are over (mission A12)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agents.models import UserAgent


def quiet_until(user_id: int, now: datetime) -> datetime | None:
    """When the user's quiet hours end, if they are on. They may reach over midnight."""
    agent = UserAgent.objects.filter(user=user_id).first()
    if agent is None or agent.quiet_from is None or agent.quiet_to is None or agent.quiet_from == agent.quiet_to:
        return None
    zone = ZoneInfo(agent.time_zone)
    wall = now.astimezone(zone).replace(tzinfo=None)
    over_midnight = agent.quiet_from > agent.quiet_to
    inside = (
        wall.time() >= agent.quiet_from or wall.time() < agent.quiet_to
        if over_midnight
        else agent.quiet_from <= wall.time() < agent.quiet_to
    )
    if not inside:
        return None
    day = wall.date() + timedelta(days=1 if over_midnight and wall.time() >= agent.quiet_from else 0)
    return datetime.combine(day, agent.quiet_to, zone).astimezone(UTC)
