"""Measured goals: the target, pace and forecast, and one review of the strategy when nothing moves (mission H1)."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, strategies as st
from pytest_django import Settings

from agents.engine import bell
from agents.refusals import Refused
from goals import firing, measuring, schedules
from goals.figures import typed
from goals.forecast import Forecast, distance, forecast
from goals.models import Goal, Measurement, Schedule, Target
from goals.outlook_words import pace, words_of
from memory.models import AgentRun, Thread, ThreadMessage
from tests.factories import bearer

pytestmark = pytest.mark.django_db(transaction=True)

BEGIN = date(2026, 11, 1)
LATER = date(2026, 12, 31)


def days(*values: float, every: int = 7) -> list[tuple[date, float]]:
    return [(BEGIN + timedelta(days=n * every), value) for n, value in enumerate(values)]


def test_a_straight_line_is_foretold_exactly() -> None:
    ahead = forecast(days(100, 98, 96, 94), 80, BEGIN + timedelta(days=70), BEGIN + timedelta(days=21))
    assert ahead is not None
    assert ahead.expected == pytest.approx(80)
    assert [ahead.low, ahead.high] == pytest.approx([80, 80])
    assert [ahead.weekly, ahead.needed] == pytest.approx([-2, -2])
    assert ahead.reached_on == BEGIN + timedelta(days=70)


def test_the_interval_is_the_textbooks() -> None:
    """For x 1 to 5 and y 2.1, 3.9, 6.2, 7.8, 10.1, at x 6: 12.01 ± 0.36 (t of 3 degrees of freedom is 1.638)."""
    points = [(BEGIN + timedelta(days=n), y) for n, y in enumerate((2.1, 3.9, 6.2, 7.8, 10.1))]
    ahead = forecast(points, 12, BEGIN + timedelta(days=5), BEGIN + timedelta(days=4))
    assert ahead is not None
    assert ahead.expected == pytest.approx(11.99, abs=0.01)
    assert (ahead.high - ahead.expected) == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("points", [[], days(1), days(1, 2), days(1, 2, 3, every=0)])
def test_too_little_is_no_ground_for_a_forecast(points: list[tuple[date, float]]) -> None:
    assert forecast(points, 5, LATER, BEGIN) is None


def test_a_line_that_leads_away_never_reaches_it() -> None:
    ahead = forecast(days(100, 101, 103), 90, LATER, BEGIN)
    assert ahead is not None
    assert ahead.reached_on is None
    level = forecast(days(100, 100, 100), 90, BEGIN, LATER)
    assert level is not None
    assert (level.reached_on, level.needed) == (None, None)


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=40), st.floats(-1e6, 1e6))
def test_no_figures_break_it(values: list[float], target: float) -> None:
    ahead = forecast(days(*values), target, LATER, BEGIN)
    assert ahead is not None
    assert ahead.low <= ahead.expected <= ahead.high


def test_what_has_passed_the_target_has_reached_it() -> None:
    assert distance(110, 131, 115) == 0
    assert distance(120, 131, 115) == 5
    assert distance(76, 60, 75) == 0
    assert distance(59, 60, 75) == 16


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("name", {"name": " "}),
        ("name", {"name": "x" * 101}),
        ("unit", {"unit": "x" * 21}),
        ("value", {"value": float("nan")}),
        ("value", {"value": 1e13}),
        ("deadline", {"deadline": date(2026, 1, 1)}),
    ],
)
def test_what_is_no_target_is_refused(field: str, given: dict[str, Any], goal: Goal) -> None:
    asked: dict[str, Any] = {"name": "Weight", "value": 70, "deadline": date(2099, 1, 1)} | given
    with pytest.raises(Refused) as refused:
        measuring.set_target(goal.thread, **asked)
    assert refused.value.code == field
    assert not Target.objects.exists()


def test_it_is_set_measured_imported_and_dropped_in_the_browser(client: Client, goal: Goal) -> None:
    page = f"/goals/{goal.pk}/measured/"
    assert "A figure to reach, and by when." in client.get(page).text
    wrong = client.post(f"{page}target", {"name": "Weight", "value": "70", "unit": "kg", "deadline": "2020-01-01"})
    assert (wrong.status_code, "lies ahead" in wrong.text) == (422, True)
    client.post(f"{page}target", {"name": "Weight", "value": "70", "unit": "kg", "deadline": "2099-01-01"})
    lines = "day,value\n2026-11-01, 80\n2026-11-08;79.5;after the holiday\n\n2026-11-15\t79"
    refused = client.post(f"{page}import", {"lines": lines + "\nyesterday, 5"})
    assert "Line 6 is not understood: “yesterday, 5”" in refused.text.replace("&quot;", '"')
    assert "after the holiday" in refused.text
    assert not Measurement.objects.exists()
    assert "3 measurements added." in client.post(f"{page}import", {"lines": lines}, follow=True).text
    assert "At this pace it will be" in client.get(page).text
    beside = client.get(f"/goals/{goal.pk}/").text
    assert all(each in beside for each in ("<svg", ">1 Nov 2026<", ">1 Jan 2099<"))
    ahead = client.post(f"{page}add", {"value": "78", "day": "2099-01-01"})
    assert (ahead.status_code, "lies ahead" in ahead.text) == (422, True)
    client.post(f"{page}add", {"value": "78", "day": "2026-11-20", "note": "evening"})
    client.post(f"{page}{Measurement.objects.get(value=80).pk}/delete")
    assert list(Measurement.objects.values_list("value", "note")) == [
        (79.5, "after the holiday"),
        (79.0, ""),
        (78.0, "evening"),
    ]
    client.post(f"{page}drop")
    assert "Set a target" in client.get(f"/goals/{goal.pk}/").text
    assert Measurement.objects.count() == 3


def test_however_many_lines_are_taken_in_the_number_of_queries_is_the_same(goal: Goal) -> None:
    def taken(count: int) -> int:
        lines = "\n".join(f"2026-11-20, {n}" for n in range(count))
        with CaptureQueriesContext(connection) as asked:
            measuring.take_in(goal.thread, lines)
        return len(asked)

    assert taken(2) == taken(300)
    values = list(Measurement.objects.values_list("value", flat=True))
    assert values == [*range(2), *range(300)]
    with pytest.raises(Refused) as refused:
        taken(measuring.MOST - 301)
    assert refused.value.code == "too_many"
    assert Measurement.objects.count() == 302


@pytest.mark.parametrize(
    "line",
    ["2026-11-20, 5, " + "x" * 140_000, "2026-11-20, " + "5" * 120_000 + "x"],
    ids=["a field", "a figure"],
)
def test_a_line_that_is_far_too_long_is_named(client: Client, goal: Goal, line: str) -> None:
    measuring.set_target(goal.thread, "Weight", 70, date(2099, 1, 1))
    answer = client.post(f"/goals/{goal.pk}/measured/import", {"lines": f"2026-11-19, 5\n{line}"})
    assert answer.status_code == 422
    assert "Line 2 is not understood" in answer.text
    assert not Measurement.objects.exists()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("72,5", 72.5),
        ("72.5", 72.5),
        (" 1 200 ", 1200),
        ("-0,125", -0.125),
        ("\N{MINUS SIGN}3", -3),
        ("1200,50", 1200.5),
        ("1.200,5", 1200.5),
        ("1,200.5", 1200.5),
        ("1.200.500", 1200500),
        ("0.125", 0.125),
    ],
)
def test_a_value_may_have_a_decimal_comma(client: Client, goal: Goal, written: str, read: float) -> None:
    page = f"/goals/{goal.pk}/measured/"
    client.post(f"{page}target", {"name": "Weight", "value": written, "deadline": "2099-01-01"})
    assert f'value="{typed(read)}"' in client.get(page).text
    client.post(f"{page}add", {"value": written, "day": "2026-11-20"})
    client.post(f"{page}import", {"lines": f"2026-11-21; {written}; evening"})
    assert list(Measurement.objects.values_list("value", "note")) == [(read, ""), (read, "evening")]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1,200", "“1,200” can be read in two ways: write 1200, or 1.2."),
        ("12.000", "“12.000” can be read in two ways: write 12000, or 12."),
        ("72.125", "“72.125” can be read in two ways: write 72125, or 72.1250."),
        ("a lot", "“a lot” is not a figure. Write it like 72.5 or 72,5."),
        ("1.2000,5", "“1.2000,5” is not a figure."),
        ("nan", "“nan” is not a figure."),
    ],
)
def test_what_is_no_figure_is_said_beside_it(client: Client, goal: Goal, written: str, said: str) -> None:
    answer = client.post(f"/goals/{goal.pk}/measured/add", {"value": written, "day": "2026-11-20"})
    assert answer.status_code == 422
    assert not Measurement.objects.exists()
    client.post(f"/goals/{goal.pk}/measured/target", {"name": "Weight", "value": "70", "deadline": "2099-01-01"})
    answer = client.post(f"/goals/{goal.pk}/measured/add", {"value": written, "day": "2026-11-20"})
    assert said in answer.text


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ('01.11.2026;"78,4";early', (78.4, "2026-11-01", "early")),
        ("1.11.2026; 1.077,2", (1077.2, "2026-11-01", "")),
        ('2026-11-02,"76,9"', (76.9, "2026-11-02", "")),
        ('2026-11-02, "76,9", after a run', (76.9, "2026-11-02", "after a run")),
        ("2026-11-03T07:30:00+01:00,77.7", (77.7, "2026-11-03", "")),
        ("2026/11/4\t77,4", (77.4, "2026-11-04", "")),
        ("2026-11-05,72.500", (72.5, "2026-11-05", "")),
        ("2026-11-05, 76, 9 km before", (76, "2026-11-05", "9 km before")),
        ("\N{ZERO WIDTH NO-BREAK SPACE}2026-11-06,77", (77, "2026-11-06", "")),
        ("\N{ZERO WIDTH NO-BREAK SPACE}Day;Weight (kg);Note\n06.11.2026;77,5;", (77.5, "2026-11-06", "")),
    ],
)
def test_what_tables_write_is_taken_in(goal: Goal, line: str, read: tuple[float, str, str]) -> None:
    measuring.take_in(goal.thread, line)
    made = Measurement.objects.get()
    assert (made.value, made.day.isoformat(), made.note) == read


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "cp1252"])
def test_a_file_is_taken_in(client: Client, goal: Goal, coding: str) -> None:
    page = f"/goals/{goal.pk}/measured/"
    client.post(f"{page}target", {"name": "Weight", "value": "70", "deadline": "2099-01-01"})
    lines = "Datum;Gewicht;Notiz\r\n01.11.2026;78,4;fr\u00fch\r\n02.11.2026;78,1;\r\n"
    file = SimpleUploadedFile("weight.csv", lines.encode(coding), "text/csv")
    answer = client.post(f"{page}import", {"lines": "", "table": file}, follow=True)
    assert "2 measurements added." in answer.text
    assert list(Measurement.objects.values_list("value", "note")) == [(78.4, "fr\u00fch"), (78.1, "")]
    file = SimpleUploadedFile("picture.csv", bytes(range(256)))
    assert client.post(f"{page}import", {"lines": "", "table": file}).status_code == 422


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2026-11-20, 76,9", "Line 1 can be read in two ways"),
        ("2026-11-20, 1,077.2", "Line 1 can be read in two ways"),
        ("20.11.2026; 12.000", "Line 1: “12.000” can be read in two ways: write 12000, or 12."),
        ("yesterday, 76.9", "Line 1 is not understood"),
        ("11/06/2026, 76.9", "Line 1 is not understood"),
        ("30.02.2026; 77", "Line 1 is not understood"),
        ("Weight 2026\n2026-11-20", "Line 2 is not understood"),
    ],
)
def test_what_could_mean_something_else_is_not_taken_in(goal: Goal, line: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        measuring.take_in(goal.thread, line)


def test_every_place_that_was_written_down_is_shown(client: Client, goal: Goal) -> None:
    page = f"/goals/{goal.pk}/measured/"
    client.post(f"{page}target", {"name": "Savings", "value": "1000000", "unit": "€", "deadline": "2099-01-01"})
    for day, value in (("2026-10-01", "1234,56"), ("2026-11-01", "12345,67"), ("2026-11-02", "0,00001")):
        client.post(f"{page}add", {"value": value, "day": day})
    shown = client.get(page).text
    assert all(value in shown for value in ("1,000,000 €", ">1234.56<", ">12,345.67<", ">0.00001<"))
    stands = measuring.outlook(goal.thread_id)
    assert stands is not None
    assert measuring.said(stands).startswith("Savings: 1000000 € by 2099-01-01.\nMeasured last: 0.00001 €")


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        ([76.4, 75], "it will be 69.2 kg then; four times out of five between 67.8 and 70.6."),
        ([76, 1e12], "it will be 69 kg then; four times out of five between 68 and 71."),
        ([0.25, 0.5], "it will be 69.19 kg then; four times out of five between 67.77 and 70.61."),
    ],
)
def test_a_forecast_is_no_finer_than_what_was_measured(measured: list[float], told: str) -> None:
    ahead = Forecast(69.1934, 67.7721, 70.6147, -0.56, -0.56, None)
    stands = measuring.Outlook(
        Target(name="Weight", value=70, unit="kg", deadline=LATER),
        [Measurement(value=value, day=day) for day, value in days(*measured)],
        ahead,
    )
    assert told in words_of(stands)


@pytest.mark.parametrize(
    ("ahead", "told", "untold"),
    [
        (Forecast(70, 70, 70, -0.5, -0.5, None), "At this pace it will be 70 kg then.", "four times"),
        (Forecast(70, 68, 72, -0.5, None, None), "That day has passed.", "At this pace"),
    ],
)
def test_nothing_is_foretold_of_what_is_sure_or_over(ahead: Forecast, told: str, untold: str) -> None:
    target = Target(name="Weight", value=70, unit="kg", deadline=LATER)
    words = words_of(measuring.Outlook(target, [Measurement(value=71, day=BEGIN)], ahead))
    assert told in words
    assert untold not in words


@pytest.mark.parametrize(
    ("value", "written"),
    [(-1.584, "\N{MINUS SIGN}1.58"), (0.0, "0"), (3.6, "+3.6"), (1234.5, "+1,234"), (-614000, "\N{MINUS SIGN}614,000")],
)
def test_a_pace_is_written_as_people_write_it(value: float, written: str) -> None:
    assert pace(value) == written


def test_over_the_api(client: Client, goal: Goal) -> None:
    api, of_goal = bearer(goal.user), f"/api/v1/goals/{goal.pk}"
    json: dict[str, Any] = {"content_type": "application/json", "headers": api}
    assert client.get(f"{of_goal}/target", headers=api).status_code == 404
    body = {"name": "Weight", "value": 70, "deadline": "2099-01-01", "unit": "kg"}
    assert client.put(f"{of_goal}/target", body, **json).json()["forecast"] is None
    for day, value in days(80, 79, 78):
        made = client.post(f"{of_goal}/measurements", {"value": value, "day": day.isoformat()}, **json)
        assert made.status_code == 201
    assert client.get(f"{of_goal}/target", headers=api).json()["forecast"]["weekly"] == pytest.approx(-1)
    one = f"/api/v1/measurements/{made.json()['id']}"
    assert client.delete(one, headers=api).status_code == 204
    assert client.post(f"{of_goal}/measurements", {"value": "NaN"}, **json).status_code == 400


def test_check_ins_without_progress_lead_to_one_review_of_the_strategy(
    goal: Goal, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WAYMARK_FLAT_CHECK_INS = 3
    monkeypatch.setattr(bell, "ring", lambda run_id: True)
    Schedule.objects.all().delete()
    schedules.add(goal.thread, "every day 8:00", "Ask for the weight.")
    measuring.set_target(goal.thread, "Weight", 70, date(2099, 1, 1))

    def reviews(*measured: float | None) -> list[bool]:
        return [_reviewed(goal, value, monkeypatch) for value in measured]

    flat = [80, 80, None, 81, 80, 80, 80]  # the first one counts: nothing was known before
    assert reviews(*flat) == [False, False, False, True, False, False, False]
    assert reviews(79, None, None, None) == [False, False, False, True]  # there was progress
    assert reviews(69.5, None, None, None, None) == [False] * 5  # it is reached


def _reviewed(goal: Goal, value: float | None, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let a check-in come, after a measurement if there is one; whether the strategy is to be reviewed."""
    if value is not None:
        measuring.measure(goal.thread, value)
    schedule = Schedule.objects.get()
    assert schedule.next_at is not None
    at = schedule.next_at
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: at)
        assert firing.fire_due() == 1
    ThreadMessage.objects.update(processed=True)
    AgentRun.objects.update(status="succeeded", finished_at=datetime.now(UTC))
    Thread.objects.update(live_run=None, pending=0)
    return firing.STRATEGY in ThreadMessage.objects.latest("position").content
