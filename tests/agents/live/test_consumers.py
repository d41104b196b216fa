"""The websocket of a page: who may open it, what it sends, and when it closes."""

import asyncio
import itertools
import time
from functools import partial
from typing import Any
from uuid import UUID

import orjson
import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from agents.live import consumers, frames, viewer, wire
from agents.live.announce import posted
from agents.live.events import ToolStart
from agents.live.keys import order, stream_key, user_channel
from agents.live.line import Line
from agents.live.snapshot import Partial, tip
from agents.live.stream import flush, notify, publish, redis_client
from agents.live.viewer import REDRAW_SECONDS
from config.asgi import application
from goals.models import Goal
from memory.models import AgentRun, RunStatus, Source, ThreadMessage
from tests.agents.live.looks import PATIENCE, finish, off_loop, say, tell, token, tokens
from tests.factories import (
    PASSWORD,
    AgentActionFactory,
    AgentRunFactory,
    GoalFactory,
    ThreadMessageFactory,
    UserFactory,
    nobody,
)
from tests.processes import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed_hub")]

ORIGIN = "http://localhost"


class Page:
    """A page with its socket. `seq` is what it would say on reconnecting.

    Without the test class of Channels, which keeps database connections open.
    """

    def __init__(self, user: User | None, thread: UUID | None, origin: str = ORIGIN) -> None:
        self.client = Client()
        self._user, self._thread, self._origin = user, thread, origin
        self.seq = ""

    async def open(self) -> bool:
        if self._user is not None and not self.client.cookies:
            await database_sync_to_async(self.client.force_login)(self._user)
        cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in self.client.cookies.items())
        path = f"/ws/threads/{self._thread}/" if self._thread else "/ws/"
        headers = [(b"host", b"localhost"), (b"origin", self._origin.encode()), (b"cookie", cookie.encode())]
        scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers, "subprotocols": []}
        self._socket = ApplicationCommunicator(application, scope)
        await self._socket.send_input({"type": "websocket.connect"})
        answer = await self._socket.receive_output(timeout=PATIENCE)
        return bool(answer["type"] == "websocket.accept")

    async def hello(self, after: str) -> None:
        self.seq = after
        await self.send(orjson.dumps({"type": "hello", "after": after}).decode())

    async def send(self, text: str) -> None:
        await self._socket.send_input({"type": "websocket.receive", "text": text})

    async def frame(self, within: float = PATIENCE) -> dict[str, Any]:
        """Return the next frame that is about the thread."""
        while True:
            frame: dict[str, Any] = orjson.loads((await self._socket.receive_output(timeout=within))["text"])
            if "seq" in frame or "type" in frame:
                self.seq = frame.get("seq", self.seq)
                return frame

    async def frames_until(self, wanted: str, within: float = PATIENCE) -> str:
        """Return what came until `wanted` was in it."""
        come = ""
        while wanted not in come:
            come += (await self.frame(within))["content"]
        return come

    async def close_code(self) -> int:
        while True:
            output = await self._socket.receive_output(timeout=PATIENCE)
            if output["type"] == "websocket.close":
                return int(output["code"])

    async def is_quiet(self) -> bool:
        return bool(await self._socket.receive_nothing(timeout=0.2))

    async def close(self) -> None:
        await self._socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._socket.wait(timeout=PATIENCE)


def has_listeners(user: User) -> bool:
    """Whether a page of theirs is told by now of what happens elsewhere; what was said before, it never hears."""
    ((_, count),) = redis_client().pubsub_numsub(user_channel(user.pk))
    return bool(count)


async def db(work: Any, *args: Any, **kwargs: Any) -> Any:
    return await database_sync_to_async(work)(*args, **kwargs)


@pytest.fixture
def goal() -> Goal:
    return GoalFactory()


@pytest.fixture
def run(goal: Goal) -> AgentRun:
    """At work on a message of its user."""
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.RUNNING)
    ThreadMessageFactory(thread=goal.thread, run=run, content="Count, please")
    return run


def answer(run: AgentRun, text: str, user: User) -> ThreadMessage:
    """Commit and announce the run's answer and its end."""
    message: ThreadMessage = ThreadMessageFactory(thread=run.thread, run=run, source=Source.AGENT, content=text)
    AgentRun.objects.filter(pk=run.pk).update(status=RunStatus.SUCCEEDED)
    publish(message.thread_id, user.pk, posted(message))
    assert flush(5)
    finish(run.thread_id, run=run.pk, user=user.pk)
    return message


async def test_the_owner_sees_the_answer_being_written_and_then_the_answer(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, "One **two**", run=run.pk)
    come = await page.frames_until("two")
    assert f'hx-target="#say-{run.pk}"' in come
    assert '<strong>two<span class="caret"></span></strong>' in come
    await db(answer, run, "One **two** three", goal.user)
    come = await page.frames_until("three")
    assert "outerMorph" in come
    assert 'id="bar"' in come
    assert 'class="chip"' not in come
    assert "aria-busy" not in come
    await page.close()


async def test_a_report_that_comes_meanwhile_leaves_the_text_on_its_way_alone(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, "One two", run=run.pk)
    await page.frames_until("two")
    report = await db(
        ThreadMessageFactory,
        thread=goal.thread,
        run=run,
        source=Source.AGENT,
        processed=False,
        content="Red ones.",
        metadata={"task": str(nobody())},
    )
    await off_loop(tell, goal.thread_id, posted(report), user=goal.user.pk)
    await off_loop(say, goal.thread_id, " three", run=run.pk)
    assert "One two three" in await page.frames_until("three")
    await page.close()


async def test_what_is_said_late_of_a_run_leaves_the_text_on_its_way_alone(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, token(1), run=run.pk)
    await page.frames_until(token(1).strip())
    await off_loop(finish, goal.thread_id, run.pk, "queued")
    await off_loop(finish, goal.thread_id, UUID(int=1))
    await off_loop(say, goal.thread_id, token(2), run=run.pk)
    await page.frames_until(tokens(1, 2).strip())
    await page.close()


async def test_an_end_that_nobody_told_of_is_seen_after_a_silence(
    goal: Goal, run: AgentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker died between the commit and the word of it."""
    monkeypatch.setattr(viewer, "SILENT_SECONDS", 0.05)
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, "One", run=run.pk)
    await page.frames_until("One")
    assert await page.is_quiet(), "it is at work"
    await db(ThreadMessageFactory, thread=goal.thread, run=run, source=Source.AGENT, content="One two")
    await db(AgentRun.objects.filter(pk=run.pk).update, status=RunStatus.SUCCEEDED)
    come = await page.frames_until("One two")
    assert "aria-busy" not in come
    assert "data-stop" not in come
    assert await page.is_quiet(), "it is told once"
    await page.close()


async def test_frames_are_partials_with_a_growing_seq_and_no_bare_html(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    seqs = [page.seq]
    for number in range(3):
        await off_loop(say, goal.thread_id, token(number), run=run.pk)
        frame = await page.frame()
        assert set(frame) <= {"seq", "content", "swap", "say"}
        assert frame["swap"] == "none"
        assert frame["content"].startswith("<hx-partial ")
        seqs.append(frame["seq"])
    assert seqs == sorted(set(seqs), key=order)
    await page.close()


async def test_a_finished_block_is_sent_once(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, "Begin", run=run.pk)
    await page.frame()
    await off_loop(say, goal.thread_id, "ning\n\nSecond\n\nThird", run=run.pk)
    frame = await page.frame()
    assert frame["content"].count("Beginning") == 1
    await off_loop(say, goal.thread_id, " grows", run=run.pk)
    frame = await page.frame()
    assert "Third grows" in frame["content"]
    assert "Beginning" not in frame["content"]
    await page.close()


async def test_REN_03_after_two_losses_the_text_is_whole_and_the_working_state_ends(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, *(token(number) for number in range(1, 51)), run=run.pk)
    await page.frames_until("t050")
    await page.close()
    await off_loop(say, goal.thread_id, *(token(number) for number in range(51, 91)), run=run.pk)
    await page.open()
    await page.hello(page.seq)
    come = await page.frames_until("t090")
    assert tokens(1, 90).strip() in come
    await page.close()
    await page.open()
    await page.hello(page.seq)
    await off_loop(say, goal.thread_id, *(token(number) for number in range(91, 201)), run=run.pk)
    assert tokens(1, 200).strip() in await page.frames_until("t200")
    await page.close()
    await db(answer, run, tokens(1, 200), goal.user)
    await page.open()
    await page.hello(page.seq)
    come = await page.frames_until("t200")
    assert come.split("</hx-partial>")[0].count("t100") == 2, "once as text, once to copy"
    assert "data-stop" not in come
    assert "aria-busy" not in come
    await page.close()


async def test_REN_03_an_outage_in_the_middle_of_a_sentence_leaves_no_hole_in_it(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await off_loop(say, goal.thread_id, token(1), token(2), run=run.pk)
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(_gap, goal.thread_id, run=run.pk, text=tokens(1, 5))
    await page.frames_until(tokens(1, 5).strip())
    await off_loop(say, goal.thread_id, token(6), run=run.pk)
    await page.frames_until(tokens(1, 6).strip())
    await page.close()


async def test_REN_03_of_a_sentence_with_a_hole_nothing_is_shown_before_the_next(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    assert await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    await off_loop(say, goal.thread_id, "The beginning, ", run=run.pk)
    await page.frames_until("The beginning,")
    await off_loop(_gap, goal.thread_id, spoils=True)
    assert "The beginning" not in (await page.frame())["content"]
    await off_loop(say, goal.thread_id, "the end.", run=run.pk)
    await asyncio.sleep(3 * REDRAW_SECONDS)  # it would be drawn by now
    await off_loop(finish, goal.thread_id, run.pk, "running")
    await off_loop(say, goal.thread_id, "The next step.", run=run.pk)
    come = await page.frames_until("The next step.")
    assert "the end." not in come
    await page.close()


def _gap(thread: UUID, **lost: Any) -> None:
    line = Line(redis_client())
    line.send([thread], [wire.gap(thread, **lost)])
    line.wait()
    line.close()


async def test_REN_03_a_place_that_is_gone_draws_everything_anew(goal: Goal, run: AgentRun) -> None:
    cursor = await off_loop(tip, goal.thread_id)
    await off_loop(say, goal.thread_id, *(token(number) for number in range(1, 51)), run=run.pk)
    await off_loop(redis_client().xtrim, stream_key(goal.thread_id), maxlen=20, approximate=False)
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello(cursor)
    frame = await page.frame()
    assert 'hx-target="#turns"' in frame["content"]
    assert tokens(1, 50).strip() in frame["content"]
    assert frame["seq"] == await off_loop(tip, goal.thread_id)
    await page.close()


async def test_REN_03_a_page_ahead_of_the_stream_loads_itself_again(goal: Goal) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello("99999999999999-0")
    assert (await page.frame())["type"] == "reload"
    await page.close()


async def test_REN_04_d_a_burst_arrives_whole_in_few_frames(goal: Goal, run: AgentRun) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    text = "".join(f"t{number:04d} " for number in range(1, 2001)).strip()
    count, come = 0, ""
    for start in range(1, 2001, 400):  # fewer than a viewer may have waiting while it draws
        await off_loop(say, goal.thread_id, *(f"t{number:04d} " for number in range(start, start + 400)), run=run.pk)
        while f"t{start + 399:04d}" not in come:
            come = (await page.frame())["content"]
            count += 1
    assert text in come
    assert count < 60
    await page.close()


async def test_text_that_takes_long_to_draw_is_drawn_less_often(
    goal: Goal, run: AgentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one long answer keeps the threads of all pages busy."""
    drawings: list[float] = []
    draw = frames.Sent.writing

    def slowly(sent: frames.Sent, text: Partial) -> str:
        drawings.append(time.monotonic())
        time.sleep(0.3)
        return draw(sent, text)

    monkeypatch.setattr(frames.Sent, "writing", slowly)
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.hello(await off_loop(tip, goal.thread_id))
    for number in range(1, 31):
        await off_loop(say, goal.thread_id, token(number), run=run.pk)
        await asyncio.sleep(0.1)
    await page.frames_until("t030")
    assert len(drawings) > 1
    assert all(later - earlier > 1.4 for earlier, later in itertools.pairwise(drawings))
    await page.close()


async def test_two_tabs_get_the_same(goal: Goal, run: AgentRun) -> None:
    first, second = Page(goal.user, goal.thread_id), Page(goal.user, goal.thread_id)
    for page in (first, second):
        await page.open()
        await page.hello(await off_loop(tip, goal.thread_id))
    await asyncio.sleep(0.1)
    action = await db(AgentActionFactory, run=run, status="started")
    cell = await db(
        ThreadMessageFactory, thread=run.thread, run=run, source="agent", message_type="tool", content="",
        metadata={"action": str(action.pk)},
    )  # fmt: skip
    started = ToolStart(run=run.pk, message=cell.pk, action=action.pk, tool="create_note", arguments={})
    await off_loop(tell, goal.thread_id, started, goal.user.pk)
    contents = [await page.frames_until("Creating") for page in (first, second)]
    assert contents[0] == contents[1]
    assert f"step-{cell.pk}" in contents[0]
    for page in (first, second):
        await page.close()


async def test_people_cannot_open_the_threads_of_others(goal: Goal) -> None:
    stranger = await db(UserFactory)
    page = Page(stranger, goal.thread_id)
    await page.open()
    assert await page.close_code() == 4404
    unknown = Page(stranger, nobody())
    await unknown.open()
    assert await unknown.close_code() == 4404


async def test_one_who_is_signed_out_is_told_to_sign_in(goal: Goal) -> None:
    page = Page(None, goal.thread_id)
    await page.open()
    assert await page.close_code() == 4401


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost", "http://localhost:81", ""])
async def test_pages_of_others_cannot_open_a_socket_even_with_the_cookie(goal: Goal, origin: str) -> None:
    assert not await Page(goal.user, goal.thread_id, origin).open()


async def test_notes_of_one_user_do_not_reach_another(goal: Goal, run: AgentRun) -> None:
    stranger = await db(GoalFactory)
    page = Page(stranger.user, stranger.thread_id)
    await page.open()
    await page.hello(await off_loop(tip, stranger.thread_id))
    await off_loop(wait_until, partial(has_listeners, stranger.user))
    await off_loop(say, goal.thread_id, "secret", run=run.pk, user=goal.user.pk)
    await off_loop(finish, goal.thread_id, run=run.pk, user=goal.user.pk)
    assert await page.is_quiet()
    await page.close()


async def test_signing_out_closes_the_open_pages(goal: Goal) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await off_loop(wait_until, partial(has_listeners, goal.user))
    await off_loop(notify, goal.user.pk, "signed_out")
    assert await page.is_quiet(), "another device signed out, this session still holds"
    await db(page.client.logout)
    await off_loop(notify, goal.user.pk, "signed_out")
    assert await page.close_code() == 4401


async def test_a_change_of_password_closes_the_open_pages_within_a_minute(
    goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "SESSION_SECONDS", 0.05)
    page = Page(goal.user, None)
    await page.open()
    goal.user.set_password(PASSWORD + "!")
    await db(goal.user.save)
    assert await page.close_code() == 4401


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"type":"hello"}', '{"type":"hello","after":1}', '{"type":"run","after":""}', "x" * 10_000]
)
async def test_anything_but_a_hello_closes_the_socket(goal: Goal, text: str) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    await page.send(text)
    assert await page.close_code() == 4400


async def test_too_many_hellos_close_the_socket(goal: Goal) -> None:
    page = Page(goal.user, goal.thread_id)
    await page.open()
    for _ in range(consumers.HELLOS_A_MINUTE + 1):
        await page.hello("")
    assert await page.close_code() == 4400
