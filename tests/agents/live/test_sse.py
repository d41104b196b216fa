"""The event stream of devices, as a client sees it."""

import asyncio
from collections import deque
from typing import Any, cast

import orjson
import pytest
from channels.db import database_sync_to_async
from django.db import OperationalError
from django.http import StreamingHttpResponse
from django.test import AsyncClient, override_settings

from agents.live import sse
from agents.live.hub import hub
from agents.live.keys import order, stream_key
from agents.live.snapshot import tip
from agents.live.sse import event_stream
from agents.live.stream import redis_client
from goals.models import Goal
from memory.models import AgentRun, RunStatus, Thread
from tests.agents.live.looks import PATIENCE, USER, finish, off_loop, read, say, token, tokens
from tests.factories import AgentRunFactory, GoalFactory, ThreadMessageFactory, UserFactory, bearer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed_hub")]


class Stream:
    """Reads frames as a browser's EventSource does: `last_id` is what it would send on reconnecting."""

    def __init__(self, response: StreamingHttpResponse) -> None:
        self._response, self._chunks = response, aiter(response)
        self._blocks: deque[str] = deque()
        self.last_id = ""

    async def frame(self, within: float = PATIENCE) -> dict[str, Any]:
        """Return the next frame that is not a heartbeat as {id, event, data}."""
        while True:
            while not self._blocks:
                *whole, rest = (await asyncio.wait_for(anext(self._chunks), within)).decode().split("\n\n")
                assert rest == "", "a chunk ends with a frame"
                self._blocks.extend(whole)
            lines = self._blocks.popleft().splitlines()
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if fields:
                self.last_id = fields.get("id", self.last_id)
                return fields | {"data": orjson.loads(fields["data"])}

    async def frames(self, count: int) -> list[dict[str, Any]]:
        return [await self.frame() for _ in range(count)]

    async def close(self) -> None:
        """With what Django leaves open beneath: a server frees it at once, a test only after its hub is gone."""
        await self._chunks.aclose()  # type: ignore[attr-defined]
        await self._response._iterator.aclose()  # type: ignore[attr-defined]


async def opened(thread: Thread, last_id: str = "") -> Stream:
    return Stream(event_stream(thread.pk, USER, last_id))


def text_of(frames: list[dict[str, Any]]) -> str:
    return "".join(frame["data"]["text"] for frame in frames if frame["event"] == "think")


@pytest.fixture
def goal() -> Goal:
    return GoalFactory()


@pytest.fixture
def thread(goal: Goal) -> Thread:
    return goal.thread


async def test_the_first_frame_carries_an_id_and_events_come_as_they_were_published(thread: Thread) -> None:
    cursor = await off_loop(tip, thread.pk)
    stream = await opened(thread, cursor)
    hello = await stream.frame()
    assert (hello["event"], hello["id"]) == ("hello", cursor)
    await off_loop(say, thread.pk, "Hi ", "there")
    frames = await stream.frames(2)
    assert [frame["event"] for frame in frames] == ["think", "think"]
    assert text_of(frames) == "Hi there"
    assert order(frames[1]["id"]) > order(frames[0]["id"]) > order(cursor)
    await stream.close()


async def test_without_a_cursor_a_snapshot_comes_first(thread: Thread) -> None:
    run = await off_loop_db(AgentRunFactory, thread=thread, status=RunStatus.RUNNING)
    message = await off_loop_db(ThreadMessageFactory, thread=thread, run=run, content="Hello?")
    await off_loop(say, thread.pk, "Half an ans", run=run.pk)
    stream = await opened(thread)
    hello, reset = await stream.frames(2)
    assert (hello["event"], reset["event"]) == ("hello", "reset")
    assert hello["id"] == reset["id"] != ""
    assert [each["id"] for each in reset["data"]["messages"]] == [str(message.pk)]
    assert reset["data"]["run"]["status"] == "running"
    assert reset["data"]["partial"] == "Half an ans"
    await off_loop(say, thread.pk, "wer", run=run.pk)
    assert (await stream.frame())["data"]["text"] == "wer"
    await stream.close()


async def test_what_a_run_left_behind_is_not_shown_as_being_written(thread: Thread) -> None:
    await off_loop(say, thread.pk, "from a run that died")
    stream = await opened(thread)
    _, reset = await stream.frames(2)
    assert reset["data"]["run"] is None
    assert reset["data"]["partial"] == ""
    await stream.close()


async def test_frames_that_are_ready_together_leave_together(thread: Thread) -> None:
    stream = await opened(thread, await off_loop(tip, thread.pk))
    await stream.frame()
    async with hub().attach(thread.pk, await off_loop(tip, thread.pk)) as other:
        await off_loop(say, thread.pk, "a", "b", "c")
        await read(other, 3)
    chunk = await asyncio.wait_for(anext(stream._chunks), PATIENCE)
    assert chunk.count(b"event: think") == 3
    await stream.close()


async def test_REN_03_two_losses_in_a_row_lose_and_double_nothing(thread: Thread) -> None:
    stream = await opened(thread, await off_loop(tip, thread.pk))
    await stream.frame()
    await off_loop(say, thread.pk, *(token(number) for number in range(1, 51)))
    seen = text_of(await stream.frames(50))
    await stream.close()
    await off_loop(say, thread.pk, *(token(number) for number in range(51, 91)))
    again = await opened(thread, stream.last_id)
    await again.frame()
    await again.close()
    third = await opened(thread, again.last_id)
    await third.frame()
    await off_loop(say, thread.pk, *(token(number) for number in range(91, 201)))
    await off_loop(finish, thread.pk)
    frames = await third.frames(151)
    assert seen + text_of(frames) == tokens(1, 200)
    assert frames[-1]["event"] == "run"
    await third.close()


async def test_REN_03_a_loss_before_the_end_still_brings_the_end(thread: Thread) -> None:
    stream = await opened(thread, await off_loop(tip, thread.pk))
    await stream.frame()
    await off_loop(say, thread.pk, "last words")
    await stream.frame()
    await stream.close()
    await off_loop(finish, thread.pk)
    again = await opened(thread, stream.last_id)
    _, end = await again.frames(2)
    assert end["data"]["status"] == "succeeded"
    await again.close()


async def test_REN_03_a_place_that_is_gone_brings_the_stored_state(thread: Thread) -> None:
    cursor = await off_loop(tip, thread.pk)
    await off_loop(say, thread.pk, *(token(number) for number in range(1, 51)))
    await off_loop(redis_client().xtrim, stream_key(thread.pk), maxlen=20, approximate=False)
    await off_loop_db(ThreadMessageFactory, thread=thread, source="agent", content=tokens(1, 200))
    stream = await opened(thread, cursor)
    _, reset = await stream.frames(2)
    assert reset["data"]["messages"][-1]["content"] == tokens(1, 200)
    await stream.close()


async def test_REN_03_two_runs_during_the_gap_are_both_told(thread: Thread) -> None:
    first, second = await off_loop_db(AgentRunFactory, thread=thread), await off_loop_db(AgentRunFactory, thread=thread)
    cursor = await off_loop(tip, thread.pk)
    for run in (first, second):
        await off_loop(say, thread.pk, "text", run=run.pk)
        await off_loop(finish, thread.pk, run=run.pk)
    stream = await opened(thread, cursor)
    frames = (await stream.frames(5))[1:]
    assert [(frame["event"], frame["data"]["run"]) for frame in frames] == [
        ("think", str(first.pk)),
        ("run", str(first.pk)),
        ("think", str(second.pk)),
        ("run", str(second.pk)),
    ]
    await stream.close()


@pytest.mark.parametrize("resumes", [True, False], ids=["from a place", "from the start"])
async def test_a_wait_that_nobody_told_of_is_told_after_a_silence(
    thread: Thread, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    """Its worker died between the commit and the word of it."""
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.02)
    run = await off_loop_db(AgentRunFactory, thread=thread, status=RunStatus.RUNNING)
    stream = await opened(thread, await off_loop(tip, thread.pk) if resumes else "")
    await stream.frames(1 if resumes else 2)
    await off_loop(say, thread.pk, "Shall I?", run=run.pk)
    assert (await stream.frame())["event"] == "think"
    await off_loop_db(AgentRun.objects.filter(pk=run.pk).update, status=RunStatus.WAITING_APPROVAL)
    async with asyncio.timeout(PATIENCE):
        told = (await stream.frame())["data"]
    assert (told["run"], told["status"]) == (str(run.pk), "waiting_approval")
    await stream.close()


@override_settings(MIDDLEWARE=["django.middleware.gzip.GZipMiddleware"])
async def test_REN_04_a_compression_does_not_hold_events_back(goal: Goal) -> None:
    headers = await off_loop_db(bearer, goal.user)
    path = f"/api/v1/goals/{goal.pk}/events"
    response = await AsyncClient().get(path, headers={"Accept-Encoding": "gzip", **headers})
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/event-stream")
    assert response["Content-Encoding"] == "identity"
    assert response["X-Accel-Buffering"] == "no"
    assert response["Cache-Control"] == "no-cache"
    stream = Stream(cast(StreamingHttpResponse, response))
    await stream.frames(2)
    await off_loop(say, goal.thread_id, "Hi")
    assert (await stream.frame())["data"]["text"] == "Hi"
    await stream.close()


async def test_REN_04_d_a_burst_to_a_slow_reader_ends_with_the_whole_text(thread: Thread) -> None:
    """The reader takes a frame now and then; when it is closed it comes back, and a reset has the text so far."""
    run = await off_loop_db(AgentRunFactory, thread=thread, status=RunStatus.RUNNING)
    stream = await opened(thread)
    _, reset = await stream.frames(2)
    text = reset["data"]["partial"]
    await off_loop(say, thread.pk, *(token(number) for number in range(1, 2001)), run=run.pk)
    while text != tokens(1, 2000):
        try:
            frame = await stream.frame()
        except StopAsyncIteration:
            stream = await opened(thread, stream.last_id)
            continue
        if frame["event"] == "think":
            text += frame["data"]["text"]
        elif frame["event"] == "reset":
            text = frame["data"]["partial"]
    await stream.close()


async def test_REN_04_e_silence_is_filled_with_heartbeats(thread: Thread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.02)
    response = event_stream(thread.pk, USER, await off_loop(tip, thread.pk))
    chunks = aiter(response)
    assert b"hello" in await anext(chunks)
    for _ in range(3):
        assert (await asyncio.wait_for(anext(chunks), PATIENCE)).startswith(b":")
    await chunks.aclose()  # type: ignore[attr-defined]


async def test_a_stream_ends_when_the_viewer_may_no_longer_look(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "CHECK_SECONDS", 0)
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.02)
    answers = [True, True, False]
    response = event_stream(thread.pk, USER, await off_loop(tip, thread.pk), lambda: answers.pop(0))
    chunks = [chunk async for chunk in aiter(response)]
    assert len(chunks) == 3
    assert answers == []


async def test_a_stream_that_fails_ends_and_is_logged(
    thread: Thread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as when PostgreSQL has been restarted."""

    def gone() -> bool:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(sse, "CHECK_SECONDS", 0)
    response = event_stream(thread.pk, USER, await off_loop(tip, thread.pk), gone)
    assert [b"hello" in chunk async for chunk in aiter(response)] == [True]
    assert "a stream failed" in caplog.text


async def test_people_cannot_follow_the_goals_of_others(goal: Goal) -> None:
    stranger = await off_loop_db(UserFactory)
    headers = await off_loop_db(bearer, stranger)
    path = f"/api/v1/goals/{goal.pk}/events"
    assert (await AsyncClient().get(path, headers=headers)).status_code == 404
    assert (await AsyncClient().get(path)).status_code == 401


async def off_loop_db(work: Any, *args: Any, **kwargs: Any) -> Any:
    return await database_sync_to_async(work)(*args, **kwargs)
