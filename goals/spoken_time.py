"""Times in words: what people and models write, and how it is said back (mission A12)."""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Final, Literal

from django.utils.formats import date_format
from django.utils.translation import gettext as _, ngettext

from goals.plain_time import MONTHS, plain
from goals.spoken_dates import DAYS, calendar, date_of, later, today, weekday
from goals.when import Turn, Unclear, checked, following, parts

CLOCK: Final = r"(?:at\s+)?(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s*(?P<half>am|pm)?(?:\s*o'?clock)?"
EXAMPLES: Final = (
    "every weekday 8:00; every Monday and Thursday 18:30; every 2 hours; every other Friday 16:00; "
    "on the 1st of every month 9:00; on the first Monday of every month 9:00"
)
ONCE_EXAMPLES: Final = "every weekday 8:00; every 2 hours; in 3 days; tomorrow 9:00; 9 December 8:00"
MORNING: Final = time(9)
FARTHEST: Final = timedelta(days=10 * 366)
"""Whoever means a moment farther from now has made a mistake, and the ends of the calendar are no moments in every
zone."""
NTH: Final = {"first": "#1", "second": "#2", "third": "#3", "fourth": "#4", "last": "l"}
OF_THE_MONTH: Final = r" (?:of|in) (?:every|each|the) month"
TURNS: Final = re.compile(r"(?:every|each) (?:(?P<n>\d{1,2})(?:nd|rd|th)?|other|second|(?P<third>third)) (?P<what>.+)")
BEGINS: Final = re.compile(
    r"(?P<what>.+?),? (?:from|starting)(?: on)? (?P<date>.+?)(?P<clock> at .+| \d{1,2}[:.]\d{2}(?: ?[ap]m)?)?"
)


def rule_of(text: str, now: datetime) -> str:
    """The rule that a phrase means, such as "every weekday 8:00"; a rule (`goals.when`) means itself.

    Args:
        now: in the person's zone: every second week is counted from the first time ahead, unless the phrase says "from"
            which day.

    Raises:
        Unclear: it is neither.
    """
    words = " ".join(text.lower().split())
    if re.fullmatch(r"([\d*/,-]+ ){2}\S+ \S+ \S+( /\S+)?", words):
        return checked(words)
    begins, begin = BEGINS.fullmatch(words), None
    if begins:
        words, begin = begins["what"] + (begins["clock"] or ""), _nearest(begins["date"].rstrip(","), now)
    said = plain(words)
    interval = r"(?:every (?P<n>\d{1,4})|every|once an?|each) ?(?P<unit>minute|hour)s?|hourly"
    if not begins and (found := re.fullmatch(interval, said)):
        return checked(_interval(found["unit"] or "hour", int(found["n"] or 1), text))
    days, clock = _split(said)
    if not begins and (of_days := _days(days)) is not None:
        return checked(f"{clock.minute} {clock.hour} {of_days}")
    if turns := _turns(days, begin or now):
        if begins and begin is None:
            raise Unclear(_("“%(text)s” is no day.") % {"text": begins["date"]})
        of_days, n, unit = turns
        return _in_turn(f"{clock.minute} {clock.hour} {of_days}", n, unit, now, begin)
    raise Unclear(_("“%(text)s” is not understood. Such as: %(examples)s.") % {"text": text, "examples": EXAMPLES})


def moment_of(text: str, now: datetime) -> datetime:
    """The moment that a phrase means, such as "tomorrow 9:00".

    Args:
        now: in the person's zone.

    Raises:
        Unclear: it means none, or one that has passed, or is years away.
    """
    said = plain(text)
    if found := re.fullmatch(r"in (?P<n>\d{1,4}|an?) (?P<unit>minute|hour|day|week)s?", said):
        n = 1 if found["n"].startswith("a") else int(found["n"])
        moment = later(now, n, found["unit"])
    else:
        days, clock = _split(said, MORNING)
        day = date_of(days, now) if days else today(now)
        if day is None or said.isdecimal() or not said:
            raise Unclear(
                _("“%(text)s” is not understood. Such as: %(examples)s.") % {"text": text, "examples": ONCE_EXAMPLES}
            )
        moment = datetime.combine(day, clock, now.tzinfo)
        if moment <= now and not days:
            moment += timedelta(days=1)
        if moment <= now:
            raise Unclear(_("%(moment)s has passed.") % {"moment": date_format(moment, "j F Y, H:i")})
    if moment > now + FARTHEST:
        raise Unclear(_("%(moment)s is too far away.") % {"moment": date_format(moment, "j F Y, H:i")})
    return moment


def said(rule: str) -> str:
    """A rule in words: "every weekday 08:00"."""
    fields, turn = parts(rule)
    minute, hour, day, month, weekday = fields.split(" ")
    if turn:
        named = {"n": turn.n, "days": _named(weekday), "clock": f"{int(hour):02}:{int(minute):02}"}
        if turn.unit == "w":
            return _("every %(n)d weeks on %(days)s %(clock)s") % named
        return _("every %(n)d days %(clock)s") % named
    if rule == "0 * * * *":
        return _("every hour")
    if (found := re.fullmatch(r"\*/(\d+) \* \* \* \*", rule)) and 60 % int(found[1]) == 0:
        return ngettext("every minute", "every %(n)s minutes", int(found[1])) % {"n": found[1]}
    if (found := re.fullmatch(r"0 \*/(\d+) \* \* \*", rule)) and 24 % int(found[1]) == 0:
        return ngettext("every hour", "every %(n)s hours", int(found[1])) % {"n": found[1]}
    if minute.isdecimal() and hour.isdecimal():
        clock = f"{int(hour):02}:{int(minute):02}"
        if words := _of_the_year(day, month, weekday, clock) or _of_the_week(day, month, weekday, clock):
            return words
    return _("by the rule %(rule)s") % {"rule": rule}


def _of_the_year(day: str, month: str, weekday: str, clock: str) -> str | None:
    """The days of a rule in words, when they are days of the year or of every month."""
    numbers = day.split(",")
    if weekday != "*" or not (day == "l" or all(number.isdecimal() for number in numbers)):
        return None
    if day == "l" and month == "*":
        return _("on the last day of every month, %(clock)s") % {"clock": clock}
    if month == "*":
        return ngettext(
            "on day %(days)s of every month, %(clock)s", "on the days %(days)s of every month, %(clock)s", len(numbers)
        ) % {"days": _listed(numbers), "clock": clock}
    if day.isdecimal() and month.isdecimal():
        date = date_format(datetime(2024, int(month), int(day)), "j F")
        return _("every year on %(date)s, %(clock)s") % {"date": date, "clock": clock}
    return None


def _of_the_week(day: str, month: str, weekday: str, clock: str) -> str | None:
    """The days of a rule in words, when they are days of the week."""
    if day != "*" or month != "*":
        return None
    found = re.fullmatch(r"(?P<last>l)?(?P<day>[0-6])(?P<nth>#[1-4])?", weekday)
    if found and (mark := found["last"] or found["nth"]):
        nth = next(word for word, known in NTH.items() if known == mark)
        named = {"nth": _(nth), "day": _(DAYS[int(found["day"])].capitalize()), "clock": clock}
        return _("on the %(nth)s %(day)s of every month, %(clock)s") % named
    days = {"*": _("day"), "1-5": _("weekday")}.get(weekday) or _named(weekday)
    return _("every %(days)s %(clock)s") % {"days": days, "clock": clock} if days else None


def _named(weekday: str) -> str | None:
    """The weekdays of a list of numbers."""
    if weekday == "0,6":
        return _("Saturday and Sunday")
    numbers = weekday.split(",")
    if not all(number.isdecimal() and int(number) <= 7 for number in numbers):
        return None
    return _listed([_(DAYS[int(number) % 7].capitalize()) for number in numbers])


def _listed(names: Sequence[str]) -> str:
    return _(" and ").join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _interval(unit: str, n: int, text: str) -> str:
    """Raises: Unclear: a rule begins anew with each hour or day, so it would not come as it says."""
    if not n or (60 if unit == "minute" else 24) % n:
        raise Unclear(_("“%(text)s” does not divide an hour or a day evenly.") % {"text": text})
    return f"*/{n} * * * *" if unit == "minute" else "0 * * * *" if n == 1 else f"0 */{n} * * *"


def _turns(said: str, begin: datetime) -> tuple[str, int, Literal["d", "w"]] | None:
    """The last three fields of a rule, of which only every n-th day or week counts: of "every other Friday", "every 2
    weeks on Monday and Thursday", "every 3 days". A week that is said without a day means that on which it begins."""
    found = TURNS.fullmatch(re.sub(r"^(?:fortnightly|every fortnight)\b", "every 2 weeks", said))
    if not found:
        return None
    n, what = int(found["n"] or (3 if found["third"] else 2)), found["what"]
    if what in ("day", "days"):
        return "* * *", n, "d"
    of_week = re.sub(r"^weeks?\b ?(?:on )?", "", what)
    days = _days(f"every {of_week}") if of_week else f"* * {begin.isoweekday() % 7}"
    return (days, n, "w") if days and re.fullmatch(r"\* \* [\d,]+", days) else None


def _nearest(said: str, now: datetime) -> datetime | None:
    """The day on which something begins, or began: of one without a year the nearest, so that what was asked for in
    time can be approved days later."""
    midnight = today(now)
    return min(calendar(said, midnight), key=lambda day: abs(day - midnight), default=None) or date_of(said, now)


def _in_turn(fields: str, n: int, unit: Literal["d", "w"], now: datetime, begin: datetime | None) -> str:
    """Such a rule.

    Args:
        begin: the day from which it is counted; None: the first one ahead.

    Raises:
        Unclear: it does not come on that day, or would come before it, or that day is years away.
    """
    zone = now.tzinfo
    assert zone is not None
    if begin is None:
        return checked(Turn.of(following(fields, zone, now), n, unit).after(fields))
    if abs(begin - today(now)) > FARTHEST:
        raise Unclear(_("%(moment)s is too far away.") % {"moment": date_format(begin, "j F Y")})
    rule = checked(Turn.of(begin, n, unit).after(fields))
    first = following(rule, zone, now)
    days = {"first": date_format(first, "l, j F Y"), "day": date_format(begin, "l, j F Y")}
    if following(fields, zone, (begin - timedelta(minutes=1)).replace(tzinfo=zone)).date() != begin.date():
        raise Unclear(_("It would come on %(first)s first, not on %(day)s.") % days)
    if first < begin:
        raise Unclear(_("It would come on %(first)s already: it can begin one turn from now at the latest.") % days)
    return rule


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
    if (fields := _days_of_the_year(said)) is not None:
        return fields
    if weekday(said.removeprefix("on ")) is not None and not said.endswith("s"):
        return None  # "on Tuesday" is one day
    bare = re.sub(r"^(?:weekly on|every|each|on)\b ?", "", said)
    if bare in ("day", "daily"):
        return "* * *"
    if bare in ("weekday", "weekdays", "working day", "workday"):
        return "* * 1-5"
    if bare in ("weekend", "weekends"):
        return "* * 0,6"
    numbers = [weekday(word) for word in re.split(r"\s+(?:and\s+)?", bare)]
    known = sorted({number for number in numbers if number is not None})
    return f"* * {','.join(map(str, known))}" if numbers and None not in numbers else None


def _days_of_the_year(said: str) -> str | None:
    """The same of "the 1st and 15th of every month", "the first Monday of the month", "every 3 March"."""
    said = re.sub(r"^(?:every month|monthly) (on .+)$", r"\1 of every month", said)
    if found := re.fullmatch(rf"(?:on )?(?:the )?(?:days? )?(\d[\w ]*?){OF_THE_MONTH}", said):
        days = [re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", day) for day in re.split(r"(?: and)?(?: the)? ", found[1])]
        numbers = sorted({int(day[1]) if day else 0 for day in days})
        return f"{','.join(map(str, numbers))} * *" if 1 <= numbers[0] <= numbers[-1] <= 28 else None
    if re.fullmatch(rf"(?:on |every )?(?:the )?last day{OF_THE_MONTH}", said):
        return "l * *"
    if found := re.fullmatch(rf"(?:on |every )?(?:the )?({'|'.join(NTH)}) ([a-z]+){OF_THE_MONTH}", said):
        number, mark = weekday(found[2]), NTH[found[1]]
        return None if number is None else f"* * {mark}{number}" if mark == "l" else f"* * {number}{mark}"
    if found := re.fullmatch(r"(?:every year|yearly|every) (?:on )?(?:the )?(.*\d.*)", said):
        date = next(calendar(found[1], datetime(2022, 1, 1)), None)  # no leap day
        return f"{date.day} {date.month} *" if date else None
    return None
