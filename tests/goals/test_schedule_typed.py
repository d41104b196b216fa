"""A time is said back while it is typed (mission A12)."""

import re

import pytest
from django.test import Client

from goals.models import Goal, Schedule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("weekdays at 8", r"Every weekday 08:00, next (Mon|Tue|Wed|Thu|Fri) \d{1,2} \w{3}, 08:00"),
        ("in 3 days", r"Once, \w{3} \d{1,2} \w{3}, \d\d:\d\d"),
        ("every other Tuesday", r"Every 2 weeks on Tuesday 09:00, next Tue \d{1,2} \w{3}, 09:00"),
        ("1 January 2020", ""),
        ("", ""),
    ],
)
def test_a_time_is_said_back_and_not_set(typed: str, meant: str, goal: Goal, client: Client) -> None:
    before = Schedule.objects.count()
    page = client.get(f"/threads/{goal.thread_id}/schedule/", {"time": typed}).text
    line = page.partition('id="time-said"')[2].partition("</span>")[0]
    assert re.fullmatch(meant, line.rpartition(">")[2].strip())
    assert Schedule.objects.count() == before


def test_every_second_week_stays_what_it_is_when_something_else_about_it_is_changed(goal: Goal, client: Client) -> None:
    listed = f"/threads/{goal.thread_id}/schedule/"
    client.post(f"{listed}add", {"time": "every other Tuesday 8:00"})
    mine = Schedule.objects.set_by_somebody()
    rule = mine.get().rule
    [typed] = re.findall(r'value="(every 2 weeks on Tuesday 08:00 from \d{1,2} \w+ 20\d\d)"', client.get(listed).text)
    for words in (typed, rule):
        intent = f"Sum up the fortnight, {words}."
        client.post(f"/schedules/{mine.get().pk}/change", {"time": words, "intent": intent})
        assert (mine.get().rule, mine.get().intent) == (rule, intent)
