"""Times in words and on the wall (mission A12, cases SCH-01 and SCH-02)."""
# ruff: noqa: DTZ001 (a time on a wall has no zone)

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from goals.spoken_time import moment_of, rule_of, said
from goals.when import Unclear, following, instant, latest

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
        ("0 8 * * 1,3", "0 8 * * 1,3", "every Monday and Wednesday 08:00"),
        ("every Monday", "0 9 * * 1", "every Monday 09:00"),
    ],
)
def test_what_people_write_is_understood_and_said_back(text: str, rule: str, back: str) -> None:
    assert (rule_of(text), said(rule)) == (rule, back)


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
        f"{'0' * 200} 8 * * *",
        "0 8 30 2 *",
        "8:00 8:00",
    ],
)
def test_what_is_no_recurring_time_is_refused(text: str) -> None:
    with pytest.raises(Unclear):
        rule_of(text)


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
    ],
)
def test_a_single_time_is_understood(text: str, moment: datetime) -> None:
    assert moment_of(text, NOW) == moment.replace(tzinfo=BERLIN)


@pytest.mark.parametrize("text", ["", "today 8:00", "yesterday", "2026-11-26", "31 February", "soon", "2026-13-01"])
def test_what_is_no_time_ahead_is_refused(text: str) -> None:
    with pytest.raises(Unclear):
        moment_of(text, NOW)


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
