"""Times in words and on the wall (mission A12, cases SCH-01 and SCH-02)."""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from goals.spoken_time import moment_of, rule_of, said
from goals.when import Unclear, checked, following, instant, latest

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 27, 14, 30, tzinfo=BERLIN)  # a Friday


@pytest.mark.parametrize(
    ("text", "rule", "back"),
    [
        ("every weekday 08:00", "0 8 * * 1-5", "every weekday 08:00"),
        ("Weekdays at 8", "0 8 * * 1-5", "every weekday 08:00"),
        ("every day at 7.30", "30 7 * * *", "every day 07:30"),
        ("daily 18:05", "5 18 * * *", "every day 18:05"),
        ("at 6 pm every day", "0 18 * * *", "every day 18:00"),
        ("every day 12 am", "0 0 * * *", "every day 00:00"),
        ("every Monday and Thursday 18:30", "30 18 * * 1,4", "every Monday and Thursday 18:30"),
        ("tuesdays, thursdays and sundays 9", "0 9 * * 0,2,4", "every Sunday, Tuesday and Thursday 09:00"),
        ("weekly on wed 9:00", "0 9 * * 3", "every Wednesday 09:00"),
        ("weekends 10", "0 10 * * 0,6", "every Saturday and Sunday 10:00"),
        ("every 2 hours", "0 */2 * * *", "every 2 hours"),
        ("hourly", "0 * * * *", "every hour"),
        ("every hour", "0 * * * *", "every hour"),
        ("every 15 minutes", "*/15 * * * *", "every 15 minutes"),
        ("on the 1st of every month 9:00", "0 9 1 * *", "on day 1 of every month, 09:00"),
        ("0  8 * * mon-fri", "0 8 * * mon-fri", "by the rule 0 8 * * mon-fri"),
        ("0 9 * * 1,3", "0 9 * * 1,3", "every Monday and Wednesday 09:00"),
        ("0 8 * * 1,3", "0 8 * * 1,3", "every Monday and Wednesday 08:00"),
        ("every Monday", "0 9 * * 1", "every Monday 09:00"),
        ("every day at noon", "0 12 * * *", "every day 12:00"),
        ("every morning", "0 9 * * *", "every day 09:00"),
        ("every evening at 8", "0 20 * * *", "every day 20:00"),
        ("every weekday at seven in the morning", "0 7 * * 1-5", "every weekday 07:00"),
        ("first Monday of the month", "0 9 * * 1#1", "on the first Monday of every month, 09:00"),
        ("every last friday of the month at 17:30", "30 17 * * l5", "on the last Friday of every month, 17:30"),
        ("on the second tuesday of every month 8", "0 8 * * 2#2", "on the second Tuesday of every month, 08:00"),
        ("last day of the month 18:00", "0 18 l * *", "on the last day of every month, 18:00"),
        ("every month on the 1st at 9:00", "0 9 1 * *", "on day 1 of every month, 09:00"),
        ("on the 1st and 15th of every month", "0 9 1,15 * *", "on the days 1 and 15 of every month, 09:00"),
        ("every year on 3 March", "0 9 3 3 *", "every year on 3 March, 09:00"),
        ("every 24 December 18:00", "0 18 24 12 *", "every year on 24 December, 18:00"),
    ],
)
def test_what_people_write_is_understood_and_said_back(text: str, rule: str, back: str) -> None:
    assert (rule_of(text, NOW), said(rule)) == (rule, back)
    assert back.startswith("by the rule") or rule_of(back, NOW) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "weekly",
        "sometimes",
        "every 61",
        "every day 25:00",
        "every 2 minutes",
        *("every 90 minutes", "every 45 minutes", "every 5 hours", "every 48 hours", "every 0 hours"),
        "* * * * *",
        f"every {'9' * 5_000} hours",
        f"morning at {'1' * 4_301}",
        f"{'0' * 200} 8 * * *",
        "0 8 30 2 *",
        "8:00 8:00",
        "monday 9:00",
        "on Tuesday",
        "on the 31st of every month",
        "on the 1st and last of every month",
        "every year on 29 February",
        "first day of the month",
    ],
)
def test_what_is_no_recurring_time_is_refused(text: str) -> None:
    with pytest.raises(Unclear):
        rule_of(text, NOW)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("in 4 hours", datetime(2026, 11, 27, 18, 30)),
        ("in an hour", datetime(2026, 11, 27, 15, 30)),
        ("in 3 days", datetime(2026, 11, 30, 14, 30)),
        ("in 2 weeks", datetime(2026, 12, 11, 14, 30)),
        ("today 18:00", datetime(2026, 11, 27, 18)),
        ("tomorrow", datetime(2026, 11, 28, 9)),
        ("tomorrow at 7 pm", datetime(2026, 11, 28, 19)),
        ("friday 8:00", datetime(2026, 12, 4, 8)),
        ("next tuesday 8", datetime(2026, 12, 1, 8)),
        ("9 December 8:00", datetime(2026, 12, 9, 8)),
        ("December 9", datetime(2026, 12, 9, 9)),
        ("3 jan 8:00", datetime(2027, 1, 3, 8)),
        ("2027-01-31 18:00", datetime(2027, 1, 31, 18)),
        ("2027-01-31", datetime(2027, 1, 31, 9)),
        ("tomorrow at noon", datetime(2026, 11, 28, 12)),
        ("tomorrow midnight", datetime(2026, 11, 28)),
        ("tonight at 8", datetime(2026, 11, 27, 20)),
        ("tonight at 20:30", datetime(2026, 11, 27, 20, 30)),
        ("tonight", datetime(2026, 11, 27, 20)),
        ("this evening", datetime(2026, 11, 27, 19)),
        ("at eight tomorrow evening", datetime(2026, 11, 28, 20)),
        ("tomorrow morning at 7", datetime(2026, 11, 28, 7)),
        ("december 9 in the evening", datetime(2026, 12, 9, 19)),
        ("in two hours", datetime(2026, 11, 27, 16, 30)),
        ("in 3 days at 9:00", datetime(2026, 11, 30, 9)),
        ("in a week at noon", datetime(2026, 12, 4, 12)),
        ("24.12.2026 18:00", datetime(2026, 12, 24, 18)),
        ("24.12.2026", datetime(2026, 12, 24, 9)),
        ("at 16", datetime(2026, 11, 27, 16)),
        ("9:00", datetime(2026, 11, 28, 9)),
        ("noon", datetime(2026, 11, 28, 12)),
        ("on Tuesday", datetime(2026, 12, 1, 9)),
    ],
)
def test_a_single_time_is_understood(text: str, moment: datetime) -> None:
    assert moment_of(text, NOW) == moment.replace(tzinfo=BERLIN)


@pytest.mark.parametrize("text", ["", "today 8:00", "yesterday", "2026-11-26", "31 February", "soon", "2026-13-01"])
def test_what_is_no_time_ahead_is_refused(text: str) -> None:
    with pytest.raises(Unclear):
        moment_of(text, NOW)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yesterday 9:00", "26 November 2026, 09:00 has passed."),
        ("2020-01-01 10:00", "1 January 2020, 10:00 has passed."),
        ("3 March 2026", "3 March 2026, 09:00 has passed."),
        ("this morning", "27 November 2026, 09:00 has passed."),
        ("61", "not understood"),
    ],
)
def test_a_time_that_has_passed_is_said_to_have_passed(text: str, why: str) -> None:
    with pytest.raises(Unclear, match=why):
        moment_of(text, NOW)


@pytest.mark.parametrize(
    ("text", "comes", "back"),
    [
        ("every 2 weeks", ["12-04", "12-18"], "every 2 weeks on Friday 09:00"),
        ("every two weeks 18:00", ["11-27", "12-11"], "every 2 weeks on Friday 18:00"),
        ("every other Monday", ["11-30", "12-14"], "every 2 weeks on Monday 09:00"),
        (
            "every second week on tue and fri 8:00",
            ["12-01", "12-04", "12-15"],
            "every 2 weeks on Tuesday and Friday 08:00",
        ),
        ("fortnightly on Thursdays at 7 pm", ["12-03", "12-17"], "every 2 weeks on Thursday 19:00"),
        ("every other weekend 10:00", ["11-28", "11-29", "12-12"], "every 2 weeks on Saturday and Sunday 10:00"),
        ("every 3 weeks on Monday", ["11-30", "12-21"], "every 3 weeks on Monday 09:00"),
        ("every second day 8:00", ["11-28", "11-30", "12-02"], "every 2 days 08:00"),
        ("every other evening at 8", ["11-27", "11-29"], "every 2 days 20:00"),
        ("every 10 days", ["11-28", "12-08"], "every 10 days 09:00"),
        ("every second Monday 8:00 from 7 December", ["12-07", "12-21"], "every 2 weeks on Monday 08:00"),
        ("every other Monday starting on 7 December at 8", ["12-07", "12-21"], "every 2 weeks on Monday 08:00"),
        ("every other Friday 9:00 from today", ["12-11", "12-25"], "every 2 weeks on Friday 09:00"),
        ("every other Friday 18:00 from today", ["11-27", "12-11"], "every 2 weeks on Friday 18:00"),
        ("every 2 weeks on Monday 08:00 from 16 November 2026", ["11-30", "12-14"], "every 2 weeks on Monday 08:00"),
        ("every 2 weeks from 7 December", ["12-07", "12-21"], "every 2 weeks on Monday 09:00"),
        ("every 2 weeks from 4 December 2026, 16:00", ["12-04", "12-18"], "every 2 weeks on Friday 16:00"),
        ("every other day 8:00 from 25 November", ["11-29", "12-01"], "every 2 days 08:00"),
        ("every third day", ["11-28", "12-01"], "every 3 days 09:00"),
        ("every 3rd day at noon", ["11-28", "12-01"], "every 3 days 12:00"),
        ("every 3 days 8:00 from 2026-11-29", ["11-29", "12-02"], "every 3 days 08:00"),
    ],
)
def test_what_comes_every_second_time_is_counted_from_the_first(text: str, comes: list[str], back: str) -> None:
    rule, now, last, came = rule_of(text, NOW), NOW, None, []
    for _time in comes:
        last = following(rule, BERLIN, now, last)
        now = instant(last, BERLIN)
        came.append(f"{last:%m-%d}")
        assert latest(rule, BERLIN, now) == last
        assert latest(rule, BERLIN, now + timedelta(hours=20)) == last
    assert (came, said(rule)) == (comes, back)
    assert checked(rule) == rule_of(rule, NOW) == rule


def test_every_second_week_goes_on_over_the_turn_of_a_year_with_53_weeks_and_of_the_clocks() -> None:
    rule, now, came = rule_of("every other Monday 2:30", NOW), NOW, []
    for _time in range(12):
        slot = following(rule, BERLIN, now)
        now = instant(slot, BERLIN)
        came.append(slot.date())
    assert {(later - sooner).days for sooner, later in pairwise(came)} == {14}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("every other Monday from 8 December", "on Monday, 7 December 2026 first, not on Tuesday, 8 December 2026"),
        ("every other Monday from 28 December", "on Monday, 30 November 2026 already: it can begin one turn from now"),
        ("every other Monday from soon", "“soon” is no day"),
        ("every other Monday from 0001-01-01", "1 January 0001 is too far away"),
        ("every other day from 9999-12-31", "31 December 9999 is too far away"),
        ("every Monday from 7 December", "not understood"),
        ("every hour from 8 to 18", "not understood"),
        ("every 15 minutes from Monday to Friday", "not understood"),
        ("hourly from 9 to 5", "not understood"),
        ("every other weekday", "not understood"),
        ("every 61 weeks", "2nd to 60th"),
        ("every 1 weeks", "2nd to 60th"),
        ("*/5 * * * * /2w+1", "one minute, one hour"),
        ("0 9 1 * * /2d+1", "one minute, one hour"),
        ("0 9 * * 1 /2w+2", "one minute, one hour"),
        ("0 9 * * 1 /99w+2", "one minute, one hour"),
        ("0 9 * * 1 /2m+1", "five fields"),
        ("0 99 * * 1 /2w+1", "five fields"),
    ],
)
def test_what_does_not_come_every_second_time_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unclear, match=why):
        rule_of(text, NOW)


def test_days_end_at_the_same_time_on_the_wall_and_hours_do_not() -> None:
    before = datetime(2027, 3, 27, 12, tzinfo=BERLIN)  # the clocks leap in the night
    assert moment_of("in 1 day", before) == datetime(2027, 3, 28, 12, tzinfo=BERLIN)
    assert moment_of("in 24 hours", before) == datetime(2027, 3, 28, 13, tzinfo=BERLIN)


def test_SCH_01_a_time_that_does_not_exist_comes_once_and_later() -> None:
    rule, now, last, came = "30 2 * * *", datetime(2027, 3, 27, tzinfo=UTC), None, []
    for _day in range(3):
        last = following(rule, BERLIN, now, last)
        now = instant(last, BERLIN)
        came.append(now)
    assert came == [
        datetime(2027, 3, 27, 1, 30, tzinfo=UTC),
        datetime(2027, 3, 28, 1, 30, tzinfo=UTC),  # 03:30 on the wall
        datetime(2027, 3, 29, 0, 30, tzinfo=UTC),
    ]


def test_SCH_01_a_time_that_comes_twice_is_due_once() -> None:
    rule, now = "30 2 * * *", datetime(2027, 10, 30, 23, tzinfo=UTC)
    first = following(rule, BERLIN, now)
    assert instant(first, BERLIN) == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    again = following(rule, BERLIN, datetime(2027, 10, 31, 0, 31, tzinfo=UTC), first)
    assert instant(again, BERLIN) == datetime(2027, 11, 1, 1, 30, tzinfo=UTC)


def test_SCH_04_the_last_time_is_found_however_long_ago() -> None:
    assert latest("*/5 * * * *", BERLIN, datetime(2036, 1, 1, tzinfo=UTC)) == datetime(2036, 1, 1, 1)
    assert latest("0 8 1 * *", BERLIN, datetime(2036, 3, 1, 6, 59, tzinfo=UTC)) == datetime(2036, 2, 1, 8)
    assert latest("30 2 * * *", BERLIN, datetime(2027, 3, 28, 1, 15, tzinfo=UTC)) == datetime(2027, 3, 27, 2, 30)
