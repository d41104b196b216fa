"""When something recurring is due, by the clock on its person's wall (mission A12, cases SCH-01 and SCH-02). Pure.

A slot is a time on that wall, without a zone; a rule is five fields of cron. Chosen, where cron leaves it open:

* A slot that the clocks leap over in spring comes as much later as they leap: 02:30 is then 03:30.
* A slot that they repeat in autumn comes once, the first time. So what is due every few minutes pauses for that hour.
* No slot comes twice, whatever zone its person moves to.
"""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from croniter import CroniterError, croniter

MOST_OFTEN: Final = timedelta(minutes=5)
LONGEST: Final = 100
"""Characters of a rule, and of a time in words."""
CHANCE: Final = re.compile(r"(?<![a-z])[hr](?![a-z])", re.IGNORECASE)
"""Fields that croniter fills by chance, anew with each look."""
LOOKED_AT: Final = 20
"""Slots of a rule that are compared to find out how often it comes."""


class Unclear(ValueError):
    """Nobody can tell when that would be; the message is for people and models alike."""


def checked(rule: str) -> str:
    """A rule in its plain form: five fields, one blank between them.

    Raises:
        Unclear: it is none, never comes, or comes more often than every MOST_OFTEN.
    """
    rule = " ".join(rule.split())
    if len(rule) > LONGEST or len(rule.split(" ")) != 5 or CHANCE.search(rule) or not croniter.is_valid(rule):
        raise Unclear(f"“{rule}” is not a time: five fields are needed, such as 0 8 * * 1-5.")
    try:
        slots = croniter(rule, datetime(2024, 1, 1))
        times = [slots.get_next(datetime) for _ in range(LOOKED_AT)]
    except CroniterError as never:
        raise Unclear(f"“{rule}” never comes.") from never
    if min(later - sooner for sooner, later in pairwise(times)) < MOST_OFTEN:
        raise Unclear(f"At most every {MOST_OFTEN.seconds // 60} minutes, please.")
    return rule


def instant(slot: datetime, zone: ZoneInfo) -> datetime:
    """The moment of a slot, in UTC."""
    return slot.replace(tzinfo=zone, fold=0).astimezone(UTC)


def following(rule: str, zone: ZoneInfo, now: datetime, last: datetime | None = None) -> datetime:
    """The first slot that lies ahead.

    Args:
        last: the slot that came last; nothing up to it comes again.
    """
    wall = now.astimezone(zone).replace(tzinfo=None)
    slots = croniter(rule, max(wall, last) if last else wall)
    slot: datetime = slots.get_next(datetime)
    while instant(slot, zone) <= now:
        slot = slots.get_next(datetime)
    return slot


def latest(rule: str, zone: ZoneInfo, now: datetime) -> datetime:
    """The last slot whose moment has come, however long the clock stood still: nothing is counted up."""
    slots = croniter(rule, now.astimezone(zone).replace(tzinfo=None) + timedelta(seconds=1))
    slot: datetime = slots.get_prev(datetime)
    while instant(slot, zone) > now:
        slot = slots.get_prev(datetime)
    return slot
