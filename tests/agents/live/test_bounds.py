"""T16: those who look on cost what they are shown, not what a model has ever sent, and are not endlessly many."""

from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from channels.db import database_sync_to_async
from django.test import AsyncClient

from agents.live import consumers, hub, items
from agents.live.events import Think
from agents.live.hub import RESUMED_BYTES
from agents.live.seats import seats
from agents.live.snapshot import tip
from agents.live.stream import flush, publish
from goals.models import Goal
from tests.agents.live.looks import RUN, USER, off_loop, payloads, say, text_of
from tests.agents.live.test_consumers import Page
from tests.factories import GoalFactory, bearer
from tests.processes import wait_until, web

pytestmark = [pytest.mark.programs, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed_hub")]


@pytest.fixture
def goal() -> Goal:
    return GoalFactory.create()


def test_a_long_piece_of_text_is_kept_as_short_ones(goal: Goal) -> None:
    text = "".join(map(str, range(20_000)))
    publish(goal.thread_id, USER, Think(run=RUN, text=text), Think(run=RUN, text="the end"))
    assert flush(5)
    kept = payloads(goal.thread_id)
    assert max(map(len, kept)) < items.LONGEST + 200
    assert b"".join(each.partition(b'"text":"')[2].removesuffix(b'"}') for each in kept).decode() == f"{text}the end"


async def test_who_missed_very_much_takes_a_snapshot_instead(goal: Goal) -> None:
    cursor = await off_loop(tip, goal.thread_id)
    await off_loop(say, goal.thread_id, *["x" * items.LONGEST] * (RESUMED_BYTES // items.LONGEST + 2))
    await off_loop(flush, 5)
    async with hub.hub().attach(goal.thread_id, cursor) as feed:
        assert not feed.resumed
        assert [each.is_reset for each in await feed.arrivals(5)] == [True]


async def test_who_missed_many_small_things_is_told_them_all(goal: Goal) -> None:
    cursor = await off_loop(tip, goal.thread_id)
    missed = [str(number) for number in range(hub.PORTION * 2 + 1)]
    await off_loop(say, goal.thread_id, *missed)
    async with hub.hub().attach(goal.thread_id, cursor) as feed:
        assert feed.resumed
        assert text_of(await feed.arrivals(5)) == "".join(missed)


async def test_devices_and_pages_of_one_user_are_not_endlessly_many(goal: Goal, settings: Any) -> None:
    settings.WAYMARK_VIEWERS_PER_USER = 2
    headers = await database_sync_to_async(bearer)(goal.user)
    place, page = f"/api/v1/goals/{goal.pk}/events", Page(goal.user, goal.thread_id)
    responses = [await AsyncClient().get(place, headers=headers) for _ in range(3)]
    chunks = [response._iterator for response in responses]  # type: ignore[attr-defined]
    assert [b"hello" in await anext(each) for each in chunks[:2]] == [True, True]
    assert [chunk async for chunk in chunks[2]] == []
    assert (await AsyncClient().get(place, headers=headers)).status_code == 429
    assert await page.open()
    assert await page.close_code() == consumers.TOO_MANY
    await chunks[0].aclose()
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    assert await page.is_quiet()
    assert (await AsyncClient().get(place, headers=headers)).status_code == 429
    await page.close()
    await chunks[1].aclose()
    assert not seats.are_taken(goal.user.pk)


def test_a_device_that_leaves_makes_room_for_the_next(goal: Goal) -> None:
    token = bearer(goal.user)["Authorization"]
    with web(WAYMARK_VIEWERS_PER_USER="1") as address:
        for _ in range(4):
            wait_until(lambda: follows(address, goal, token))


def follows(address: str, goal: Goal, token: str) -> bool:
    """Open a stream, and leave once it has begun."""
    request = Request(f"{address}/api/v1/goals/{goal.pk}/events", headers={"Authorization": token})
    try:
        with urlopen(request, timeout=10) as stream:
            return stream.readline().startswith(b"id: ")
    except HTTPError:
        return False
