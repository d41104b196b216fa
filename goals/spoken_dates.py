"""Days in words (mission A12)."""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from goals.plain_time import MONTHS

DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def later(now: datetime, n: int, unit: str) -> datetime:
    """Minutes and hours pass everywhere alike; days and weeks end at the same time on the wall."""
    if unit in ("minute", "hour"):
        return datetime.fromtimestamp(now.timestamp() + n * (60 if unit == "minute" else 3600), now.tzinfo)
    return now + timedelta(days=n * (7 if unit == "week" else 1))


def weekday(word: str) -> int | None:
    """The number of a weekday, Sunday's is 0, by its name, which may be cut to three letters or in the plural."""
    word = word.removesuffix("s") if len(word) > 3 else word
    return next((n for n, name in enumerate(DAYS) if len(word) >= 3 and name.startswith(word)), None)


def date_of(said: str, now: datetime) -> datetime | None:
    """Midnight of the day that is meant; of one without a year the next."""
    midnight = today(now)
    bare = re.sub(r"^(?:on )?(?:next |this )?", "", said)
    if bare in (named := {"yesterday": -1, "today": 0, "tomorrow": 1}):
        return midnight + timedelta(days=named[bare])
    if found := re.fullmatch(r"in (\d{1,4}|an?) (day|week)s?", bare):
        return later(midnight, 1 if found[1].startswith("a") else int(found[1]), found[2])
    if (number := weekday(bare)) is not None and " " not in bare:
        ahead = (number - now.isoweekday()) % 7 or 7
        return midnight + timedelta(days=ahead)
    days = list(calendar(bare, midnight))
    return next((day for day in days if day >= midnight), days[-1] if days else None)


def today(now: datetime) -> datetime:
    return datetime(now.year, now.month, now.day)


def calendar(bare: str, today: datetime) -> Iterator[datetime]:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", bare):
        yield from _valid(*map(int, bare.split("-")))
    if dotted := re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", bare):
        yield from _valid(*map(int, reversed(dotted.groups())))
    found = re.fullmatch(r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.)? (?:of )?(?P<m>[a-z]{3,9})(?: (?P<y>\d{4}))?", bare)
    found = found or re.fullmatch(r"(?P<m>[a-z]{3,9}) (?P<d>\d{1,2})(?:st|nd|rd|th)?(?: (?P<y>\d{4}))?", bare)
    month = next((n for n, name in enumerate(MONTHS, 1) if found and name.startswith(found["m"])), None)
    if found and month:
        years = [int(found["y"])] if found["y"] else [today.year, today.year + 1]
        for year in years:
            yield from _valid(year, month, int(found["d"]))


def _valid(year: int, month: int, day: int) -> Iterator[datetime]:
    try:
        yield datetime(year, month, day)
    except ValueError:
        return
