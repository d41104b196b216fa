"""When something recurring is due, by the clock on its person's wall (mission A12, cases SCH-01 and SCH-02). Pure.

A slot is a time on that wall, without a zone; a rule is five fields of cron, after which a `Turn` may stand: cron knows
no "every second week". Chosen, where cron leaves it open:

* A slot that the clocks leap over in spring comes as much later as they leap: 02:30 is then 03:30.
* A slot that they repeat in autumn comes once, the first time. So what is due every few minutes pauses for that hour.
* No slot comes twice, whatever zone its person moves to.
"""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final, Literal, NamedTuple, Self

from croniter import CroniterError, croniter

MOST_OFTEN: Final = timedelta(minutes=5)
LONGEST: Final = 100
"""Characters of a rule, and of a time in words."""
CHANCE: Final = re.compile(r"(?<![a-z])[hr](?![a-z])", re.IGNORECASE)
"""Fields that croniter fills by chance, anew with each look."""
MOST_SELDOM: Final = 60
"""Days or weeks that a turn takes."""
EPOCH: Final = date(2024, 1, 1)
"""A Monday, from which turns are counted."""
TURN: Final = re.compile(r"(?P<n>\d{1,2})(?P<unit>[dw])\+(?P<passed>\d{1,2})", re.ASCII)
LOOKED_AT: Final = 20
"""Slots of a rule that are compared to find out how often it comes."""


class Unclear(ValueError):
    """Nobody can tell when that would be; the message is for people and models alike."""


class Turn(NamedTuple):
    """Every n-th day or week (from Monday on) alone counts, which is written "/2w+1".

    passed: how many of them lie between EPOCH and the first that counts.
    """

    n: int
    unit: Literal["d", "w"]
    passed: int

    @classmethod
    def of(cls, slot: datetime, n: int, unit: Literal["d", "w"]) -> Self:
        """The one in which that slot counts. Raises: Unclear: nothing can come that seldom."""
        if not 1 < n <= MOST_SELDOM:
            raise Unclear(f"Every 2nd to {MOST_SELDOM}th day or week, please.")
        return cls(n, unit, _passed(slot, unit) % n)

    def has(self, slot: datetime) -> bool:
        return _passed(slot, self.unit) % self.n == self.passed

    def after(self, fields: str) -> str:
        """The rule of those fields."""
        return f"{fields} /{self.n}{self.unit}+{self.passed}"


def parts(rule: str) -> tuple[str, Turn | None]:
    """Its five fields, and which of their days count; None: all."""
    fields, _, turn = rule.partition(" /")
    if not (found := TURN.fullmatch(turn)):
        return rule, None
    return fields, Turn(int(found["n"]), "w" if found["unit"] == "w" else "d", int(found["passed"]))


def checked(rule: str) -> str:
    """A rule in its plain form: five fields, one blank between them, and perhaps a turn, which needs one time a day.

    Raises:
        Unclear: it is none, never comes, or comes more often than every MOST_OFTEN.
    """
    rule = " ".join(rule.split())
    fields, turn = parts(rule)
    if turn:
        days = r"\*" if turn.unit == "d" else r"[0-6](,[0-6])*"
        if not (1 < turn.n <= MOST_SELDOM and turn.passed < turn.n and re.fullmatch(rf"\d+ \d+ \* \* {days}", fields)):
            raise Unclear(f"“{rule}” is not a time: one minute, one hour and days of the week stand before “/”.")
        return turn.after(checked(fields))
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


def instant(slot: datetime, zone: tzinfo) -> datetime:
    """The moment of a slot, in UTC."""
    return slot.replace(tzinfo=zone, fold=0).astimezone(UTC)


def following(rule: str, zone: tzinfo, now: datetime, last: datetime | None = None) -> datetime:
    """The first slot that lies ahead.

    Args:
        last: the slot that came last; nothing up to it comes again.
    """
    wall = now.astimezone(zone).replace(tzinfo=None)
    slots = _slots(rule, max(wall, last) if last else wall)
    return next(slot for slot in slots if instant(slot, zone) > now)


def latest(rule: str, zone: tzinfo, now: datetime) -> datetime:
    """The last slot whose moment has come, however long the clock stood still: nothing is counted up."""
    slots = _slots(rule, now.astimezone(zone).replace(tzinfo=None) + timedelta(seconds=1), back=True)
    return next(slot for slot in slots if instant(slot, zone) <= now)


def _slots(rule: str, wall: datetime, *, back: bool = False) -> Iterator[datetime]:
    """Those after a time on the wall, or those before it."""
    fields, turn = parts(rule)
    slots = croniter(fields, wall)
    while True:
        slot: datetime = slots.get_prev(datetime) if back else slots.get_next(datetime)
        if turn is None or turn.has(slot):
            yield slot


def _passed(slot: datetime, unit: Literal["d", "w"]) -> int:
    return (slot.date() - EPOCH).days // (7 if unit == "w" else 1)
