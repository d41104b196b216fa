"""Conversations through the API: messages in pages, posts that may be repeated, and the event stream."""

import asyncio
import json
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from channels.db import database_sync_to_async as in_thread
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from pytest_django import DjangoAssertNumQueries

from agents.api.threads import Admitted
from agents.live.hub import hub
from agents.models import DeviceToken
from agents.services import assistant_of
from goals.models import Goal
from memory.models import AgentRun, ThreadMessage
from tests.factories import GoalFactory, ThreadMessageFactory, UserFactory, bearer

pytestmark = pytest.mark.django_db(transaction=True)

RUN = {
    *("id", "goal", "task", "status", "trigger", "reason", "error", "iterations", "tokens", "cost"),
    *("created_at", "started_at", "finished_at"),
}
MESSAGE = {"id", "source", "message_type", "content", "metadata", "run", "created_at"}


def messages_of(goal: Goal) -> str:
    return f"/api/v1/goals/{goal.pk}/messages"


def say(api: Client, path: str, content: str, **more: Any) -> Any:
    return api.post(path, {"content": content, **more}, content_type="application/json")


def test_a_message_is_accepted_with_the_run_that_will_answer(api: Client, goal: Goal, rung: list[UUID]) -> None:
    answer = say(api, messages_of(goal), "Create a note")
    assert answer.status_code == 202
    message, run = answer.json()["message"], answer.json()["run"]
    assert (set(message), set(run)) == (MESSAGE, RUN)
    assert (message["content"], message["source"], message["run"]) == ("Create a note", "user", run["id"])
    assert (run["status"], run["goal"], run["iterations"], run["cost"]) == ("queued", str(goal.pk), 0, "0")
    assert rung == [UUID(run["id"])]
    assert api.get(messages_of(goal)).json()["results"] == [message]


def test_a_second_message_goes_to_the_same_live_run(api: Client, goal: Goal, rung: list[UUID]) -> None:
    first, second = (say(api, messages_of(goal), text).json() for text in ("One", "Two"))
    assert first["run"] == second["run"]
    assert len(rung) == 1


def test_the_same_client_id_gives_the_same_message_and_run(api: Client, goal: Goal, rung: list[UUID]) -> None:
    sent = str(uuid4())
    first = say(api, messages_of(goal), "Once", client_message_id=sent)
    again = say(api, messages_of(goal), "Once", client_message_id=sent)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == first.json()
    assert ThreadMessage.objects.count() == AgentRun.objects.count() == len(rung) == 1


def test_the_assistant_is_talked_to_in_the_same_way(api: Client, user: User, rung: list[UUID]) -> None:
    answer = say(api, "/api/v1/agent/messages", "Hello")
    assert answer.status_code == 202
    assert answer.json()["run"]["goal"] is None
    assert ThreadMessage.objects.get().thread == assistant_of(user).thread
    assert len(api.get("/api/v1/agent/messages").json()["results"]) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": 7}, "content"),
        ({"content": "x", "client_message_id": "7"}, "client_message_id"),
        ({"content": "x", "source": "agent"}, "source"),
        ({"content": "x", "run": None}, "run"),
    ],
)
def test_a_wrong_body_is_refused_by_field(api: Client, goal: Goal, body: dict[str, Any], field: str) -> None:
    answer = api.post(messages_of(goal), body, content_type="application/json")
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]
    assert not ThreadMessage.objects.exists()


@pytest.mark.parametrize(("text", "code"), [(" \n", "blank"), ("x" * 100_001, "too_long")])
def test_text_that_the_service_refuses(api: Client, goal: Goal, text: str, code: str) -> None:
    answer = say(api, messages_of(goal), text)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_a_post_asks_nothing_through_the_orm(
    api: Client, goal: Goal, rung: list[UUID], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    GoalFactory(user=goal.user)
    api.get("/api/v1/goals")  # notes the use of the token
    with django_assert_num_queries(0):  # three prepared statements: token and user; thread; message and run
        run = say(api, messages_of(goal), "Fast").json()["run"]
    assert api.get(f"/api/v1/runs/{run['id']}").json() == run


def test_messages_come_oldest_first_in_pages(api: Client, goal: Goal) -> None:
    made = [str(ThreadMessageFactory(thread=goal.thread).pk) for _ in range(5)]
    ThreadMessageFactory()
    seen: list[str] = []
    path: str | None = f"{messages_of(goal)}?limit=2"
    while path:
        page = api.get(path).json()
        seen += [message["id"] for message in page["results"]]
        path = page["next"]
    assert seen == made


def test_only_what_came_after_a_message(api: Client, goal: Goal) -> None:
    made = [ThreadMessageFactory(thread=goal.thread) for _ in range(3)]
    page = api.get(messages_of(goal), {"after": made[0].pk}).json()
    assert [message["id"] for message in page["results"]] == [str(made[1].pk), str(made[2].pk)]


def test_after_must_be_a_message_of_the_thread(api: Client, goal: Goal) -> None:
    for after in ("x", str(uuid4()), str(ThreadMessageFactory().pk)):
        answer = api.get(messages_of(goal), {"after": after})
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["after"])


class Frames:
    """Reads the frames of an event stream."""

    def __init__(self, response: StreamingHttpResponse) -> None:
        self._chunks = aiter(response)
        self._waiting: list[dict[str, str]] = []

    async def next(self) -> dict[str, Any]:
        while not self._waiting:
            chunk = (await asyncio.wait_for(anext(self._chunks), 5)).decode()
            for block in filter(None, chunk.split("\n\n")):
                lines = [line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")]
                self._waiting.append(dict(lines))
        frame = self._waiting.pop(0)
        return {**frame, "data": json.loads(frame["data"])}


@pytest.mark.parametrize("place", ["goal", "agent"])
async def test_events_follow_a_message(place: str, rung: list[UUID]) -> None:
    _, goal, headers = await in_thread(_someone)()
    base = f"/api/v1/goals/{goal.pk}" if place == "goal" else "/api/v1/agent"
    client = AsyncClient()
    cursor = (await client.get(f"{base}/messages", headers=headers))["Last-Event-ID"]
    response = await client.get(f"{base}/events", headers={**headers, "Last-Event-ID": cursor})
    assert response["Content-Type"].startswith("text/event-stream")
    frames = Frames(cast(StreamingHttpResponse, response))
    assert (await frames.next())["event"] == "hello"
    posted = await client.post(
        f"{base}/messages", {"content": "Hello"}, content_type="application/json", headers=headers
    )
    frame = await frames.next()
    assert (frame["event"], frame["data"]["message"]) == ("message", posted.json()["message"]["id"])
    assert "id" in frame
    await hub().close()


def _someone() -> tuple[User, Goal, dict[str, str]]:
    user: User = UserFactory()
    return user, GoalFactory(user=user), bearer(user)


async def test_the_stream_is_refused_like_any_other_route() -> None:
    _, _, headers = await in_thread(_someone)()
    _, others, _ = await in_thread(_someone)()
    path = f"/api/v1/goals/{others.pk}/events"
    unknown = await AsyncClient().get(path)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (401, "not_authenticated")
    foreign = await AsyncClient().get(path, headers=headers)
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "not_found")
    posted = await AsyncClient().post("/api/v1/agent/events", headers=headers)
    assert (posted.status_code, posted.json()["error"]["code"]) == (405, "method_not_allowed")


def test_an_open_stream_learns_that_its_device_was_signed_out(user: User, goal: Goal) -> None:
    bearer(user)
    device = DeviceToken.objects.get(user=user)
    admitted = Admitted(device.pk, goal.thread.pk)
    assert admitted.still()
    assert not Admitted(device.pk, GoalFactory().thread.pk).still()
    device.delete()
    assert not admitted.still()
