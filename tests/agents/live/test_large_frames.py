"""A page of a long conversation is drawn anew in one frame, over the real web server."""

import orjson
import pytest
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from agents.live.snapshot import tip
from goals.models import Goal
from memory.models import Source
from tests.factories import GoalFactory, ThreadMessageFactory
from tests.processes import web

pytestmark = [pytest.mark.programs, pytest.mark.django_db(transaction=True)]

ANSWER = "word " * 30_000
TURNS = 12


def _page(address: str, goal: Goal) -> ClientConnection:
    browser = Client()
    browser.force_login(goal.user)
    headers = {"Cookie": f"sessionid={browser.cookies['sessionid'].value}", "Origin": address}
    place = f"ws{address.removeprefix('http')}/ws/threads/{goal.thread_id}/"
    return connect(place, additional_headers=headers, proxy=None, max_size=None)


def test_a_conversation_longer_than_what_may_come_in_goes_out() -> None:
    goal = GoalFactory()
    for _ in range(TURNS):
        ThreadMessageFactory(thread=goal.thread, source=Source.USER, content="Go on")
        ThreadMessageFactory(thread=goal.thread, source=Source.AGENT, content=ANSWER)
    tip(goal.thread_id)
    with web() as address, _page(address, goal) as page:
        page.send(orjson.dumps({"type": "hello", "after": "1-1"}).decode())
        frame = orjson.loads(page.recv(timeout=60))
    assert frame["content"].count(ANSWER.strip()) >= TURNS


def test_what_comes_in_is_not_even_collected() -> None:
    """The connection is dropped before the end of the message, while a short one that is no hello gets a code."""
    goal = GoalFactory()
    with web() as address:
        with _page(address, goal) as page, pytest.raises(ConnectionClosed) as closed:
            page.send(["x" * 1_000] * 10)
            page.recv(timeout=30)
        assert closed.value.rcvd is None
        with _page(address, goal) as page, pytest.raises(ConnectionClosed) as closed:
            page.send("x" * 1_000)
            page.recv(timeout=30)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4400
