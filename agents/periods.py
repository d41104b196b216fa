"""From which day until which day, as people and programs ask for it."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo

from django.utils import timezone
from django.utils.translation import gettext as _

from agents.costs import Period
from agents.refusals import Refused

FIRST_YEAR, LAST_YEAR = 2000, 9000


def days(asked: Mapping[str, str], zone: tzinfo) -> tuple[date, date]:
    """Return the first and the last day of `?since=` and `?until=`; without them, this month until today.

    Raises:
        Refused: one is no day, or the last comes before the first.
    """
    today = timezone.localdate(timezone=zone)
    until = _day(asked.get("until", ""), today)
    since = _day(asked.get("since", ""), min(until, today).replace(day=1))
    if until < since:
        raise Refused("invalid_period", _("The period ends before it begins."))
    return since, until


def period(since: date, until: date, zone: tzinfo) -> Period:
    """The time from the beginning of one day to the end of another."""
    following = until + timedelta(days=1)
    return Period(datetime.combine(since, time(), zone), datetime.combine(following, time(), zone), zone)


def _day(text: str, otherwise: date) -> date:
    if not text:
        return otherwise
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise Refused("invalid_period", _("A day is written like 2026-11-28."))
    return day
