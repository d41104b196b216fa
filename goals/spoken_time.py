"""Times in words: what people and models write, and how it is said back (mission A12)."""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

import re
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import Final

from django.utils.formats import date_format
from django.utils.translation import gettext as _, ngettext

from goals.when import Unclear, checked

DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
CLOCK: Final = r"(?:at\s+)?(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s*(?P<half>am|pm)?(?:\s*o'?clock)?"
EXAMPLES: Final = "every weekday 8:00; every Monday and Thursday 18:30; every 2 hours; on the 1st of every month 9:00"
ONCE_EXAMPLES: Final = "every weekday 8:00; every 2 hours; in 3 days; tomorrow 9:00; 9 December 8:00"
MORNING: Final = time(9)
FARTHEST: Final = timedelta(days=10 * 366)
"""Whoever means a later moment has made a mistake, and the end of the calendar is no moment in every zone."""


def rule_of(text: str) -> str:
    """The rule that a phrase means, such as "every weekday 8:00"; a rule of cron means itself.

    Raises:
        Unclear: it is neither.
    """
    rule = text.lower().split()
    if len(rule) == 5 and rule[0][0] in "0123456789*":
        return checked(" ".join(rule))
    said = " ".join(text.lower().replace(",", " ").split())
    if found := re.fullmatch(r"(?:every (?P<n>\d{1,4})|every|once an?|each) ?(?P<unit>minute|hour)s?|hourly", said):
        return checked(_interval(found["unit"] or "hour", int(found["n"] or 1), text))
    days, clock = _split(said)
    if (fields := _days(days)) is None:
        raise Unclear(_("“%(text)s” is not understood. Such as: %(examples)s.") % {"text": text, "examples": EXAMPLES})
    return checked(f"{clock.minute} {clock.hour} {fields}")


def moment_of(text: str, now: datetime) -> datetime:
    """The moment that a phrase means, such as "tomorrow 9:00".

    Args:
        now: in the person's zone.

    Raises:
        Unclear: it means none, or one that has passed, or is years away.
    """
    said = " ".join(text.lower().replace(",", " ").split())
    if found := re.fullmatch(r"in (?P<n>\d{1,4}|an?) (?P<unit>minute|hour|day|week)s?", said):
        n = 1 if found["n"].startswith("a") else int(found["n"])
        moment = _later(now, n, found["unit"])
    else:
        days, clock = _split(said, MORNING)
        if (day := _date(days, now)) is None:
            raise Unclear(
                _("“%(text)s” is not understood. Such as: %(examples)s.") % {"text": text, "examples": ONCE_EXAMPLES}
            )
        moment = datetime.combine(day, clock, now.tzinfo)
        if moment <= now:
            raise Unclear(_("%(moment)s has passed.") % {"moment": date_format(moment, "j F Y, H:i")})
    if moment > now + FARTHEST:
        raise Unclear(_("%(moment)s is too far away.") % {"moment": date_format(moment, "j F Y, H:i")})
    return moment


def said(rule: str) -> str:
    """A rule in words: "every weekday 08:00"."""
    minute, hour, day, month, weekday = rule.split(" ")
    if rule == "0 * * * *":
        return _("every hour")
    if (found := re.fullmatch(r"\*/(\d+) \* \* \* \*", rule)) and 60 % int(found[1]) == 0:
        return ngettext("every minute", "every %(n)s minutes", int(found[1])) % {"n": found[1]}
    if (found := re.fullmatch(r"0 \*/(\d+) \* \* \*", rule)) and 24 % int(found[1]) == 0:
        return ngettext("every hour", "every %(n)s hours", int(found[1])) % {"n": found[1]}
    if not (minute.isdecimal() and hour.isdecimal() and month == "*"):
        return _("by the rule %(rule)s") % {"rule": rule}
    clock = f"{int(hour):02}:{int(minute):02}"
    if day.isdecimal() and weekday == "*":
        return _("on day %(day)s of every month, %(clock)s") % {"day": day, "clock": clock}
    days = {"*": _("day"), "1-5": _("weekday"), "0,6": _("Saturday and Sunday")}.get(weekday) or _named(weekday)
    if day != "*" or days is None:
        return _("by the rule %(rule)s") % {"rule": rule}
    return _("every %(days)s %(clock)s") % {"days": days, "clock": clock}


def _named(weekday: str) -> str | None:
    """The weekdays of a list of numbers."""
    numbers = weekday.split(",")
    if not all(number.isdecimal() and int(number) <= 7 for number in numbers):
        return None
    names = [_(DAYS[int(number) % 7].capitalize()) for number in numbers]
    return _(" and ").join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _interval(unit: str, n: int, text: str) -> str:
    """Raises: Unclear: a rule begins anew with each hour or day, so it would not come as it says."""
    if not n or (60 if unit == "minute" else 24) % n:
        raise Unclear(_("“%(text)s” does not divide an hour or a day evenly.") % {"text": text})
    return f"*/{n} * * * *" if unit == "minute" else "0 * * * *" if n == 1 else f"0 */{n} * * *"


def _later(now: datetime, n: int, unit: str) -> datetime:
    """Minutes and hours pass everywhere alike; days and weeks end at the same time on the wall."""
    if unit in ("minute", "hour"):
        return datetime.fromtimestamp(now.timestamp() + n * (60 if unit == "minute" else 3600), now.tzinfo)
    return now + timedelta(days=n * (7 if unit == "week" else 1))


def _split(said: str, otherwise: time | None = None) -> tuple[str, time]:
    """The days and the clock of a phrase; the clock stands at its end, or at its beginning after "at"."""
    for pattern in (rf"(?P<days>.*?)\s*\b{CLOCK}", rf"at {CLOCK}\s+(?P<days>.+)"):
        found = re.fullmatch(pattern, said)
        if found and (clock := _clock(found)) and not _ends_in_a_date(said, found["days"]):
            return found["days"].strip(), clock
    if otherwise is None:
        return said, MORNING
    return said, otherwise


def _ends_in_a_date(said: str, days: str) -> bool:
    """Whether what looks like a clock is the end of a date: "2027-01-31", "the 1", "december 9"."""
    return bool(re.search(r"-$|\bthe$", days)) or (days.split(" ")[-1] in MONTHS and ":" not in said)


def _clock(found: re.Match[str]) -> time | None:
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] == "pm" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None


def _days(said: str) -> str | None:
    """The last three fields of a rule for "every weekday", "mondays and fridays", "on the 1st of every month"."""
    if found := re.fullmatch(r"(?:on )?(?:the |day )?(\d{1,2})(?:st|nd|rd|th)? of (?:every|each|the) month", said):
        return f"{int(found[1])} * *" if 1 <= int(found[1]) <= 28 else None
    bare = re.sub(r"^(?:weekly on|every|each|on)\b ?", "", said)
    if bare in ("day", "daily"):
        return "* * *"
    if bare in ("weekday", "weekdays", "working day", "workday"):
        return "* * 1-5"
    if bare in ("weekend", "weekends"):
        return "* * 0,6"
    numbers = [_number(word) for word in re.split(r"\s+(?:and\s+)?", bare)]
    known = sorted({number for number in numbers if number is not None})
    return f"* * {','.join(map(str, known))}" if numbers and None not in numbers else None


def _number(word: str) -> int | None:
    """Of a weekday, by its name, which may be cut to three letters or in the plural."""
    word = word.removesuffix("s") if len(word) > 3 else word
    return next((n for n, name in enumerate(DAYS) if len(word) >= 3 and name.startswith(word)), None)


def _date(said: str, now: datetime) -> datetime | None:
    """Midnight of the day that is meant; of one without a year the next."""
    today = datetime(now.year, now.month, now.day)
    bare = said.removeprefix("on ").removeprefix("next ")
    if bare in ("today", "tonight", ""):
        return today if said else None
    if bare == "tomorrow":
        return today + timedelta(days=1)
    if (number := _number(bare)) is not None and " " not in bare:
        ahead = (number - now.isoweekday()) % 7 or 7
        return today + timedelta(days=ahead)
    return next((day for day in _calendar(bare, today) if day >= today), None)


def _calendar(bare: str, today: datetime) -> Iterator[datetime]:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", bare):
        yield from _valid(*map(int, bare.split("-")))
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
