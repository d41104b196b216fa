"""What is new, as devices follow it (mission H11)."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from agents.live.events import RunChanged
from agents.live.stream import publish
from goals.models import Goal
from tests.agents.live.looks import off_loop
from tests.agents.live.test_sse import Stream
from tests.factories import GoalFactory, bearer, nobody
from tests.goals.test_feed import happened

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory(user=user)
    return goal


async def opened(headers: dict[str, str]) -> Stream:
    answer: Any = await AsyncClient().get("/api/v1/updates/events", headers=headers)
    return Stream(answer)


@pytest.mark.usefixtures("closed_hub")
async def test_the_stream_begins_where_a_device_left_off_and_misses_nothing(goal: Goal, user: User) -> None:
    await off_loop(happened, goal)
    headers = await off_loop(bearer, user)
    stream = await opened(headers)
    first = await stream.frame()
    assert {update["kind"] for update in first["data"]["updates"]} == {"answer", "change"}
    await off_loop(happened, goal, "The shoes are here.")
    await off_loop(
        publish, goal.thread_id, user.pk, RunChanged(run=nobody(), status="succeeded", iterations=1, cost=None)
    )
    second = await stream.frame()
    assert {update["said"] for update in second["data"]["updates"]} == {"Created a note Plan", "The shoes are here"}
    await stream.close()
    await off_loop(happened, goal, "The van is booked.")
    stream = await opened(headers | {"Last-Event-ID": stream.last_id})
    assert "The van is booked" in [update["said"] for update in (await stream.frame())["data"]["updates"]]
    await stream.close()
