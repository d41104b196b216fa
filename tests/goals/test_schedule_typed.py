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
        ("every other Tuesday", ""),
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
