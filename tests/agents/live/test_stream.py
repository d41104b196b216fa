"""What producers rely on: publishing never fails, never waits, and an outage heals by itself."""

import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
import redis

from agents.live import stream
from agents.live.events import EVENT, MessagePosted, RunChanged, Think, ToolStart
from agents.live.items import Item, joined
from agents.live.keys import RESET, kind_of, order, partial_key, stream_key, user_channel
from agents.live.line import Line
from agents.live.snapshot import place, tip
from agents.live.stream import Publisher, flush, publish, redis_client
from memory.ids import new_id
from tests.agents.live.looks import RUN, USER, finish, payloads, say, tell, token, tokens
from tests.processes import wait_until


@pytest.fixture
def thread() -> UUID:
    return new_id()


def change(thread: UUID, number: int) -> Item:
    return Item(thread, USER, RunChanged(run=RUN, status="running", iterations=number, cost=None))


def posted(source: str, **metadata: str) -> MessagePosted:
    return MessagePosted(
        run=RUN,
        message=new_id(),
        source=source,
        message_type="text",
        content="Done.",
        metadata=dict(metadata),
        created_at=datetime.now(UTC),
    )


def test_an_event_can_be_read_again_as_it_was(thread: UUID) -> None:
    event = ToolStart(run=RUN, message=new_id(), action=new_id(), tool="create_note", arguments={"title": "ü"})
    tell(thread, event)
    (payload,) = payloads(thread)
    assert EVENT.validate_json(payload) == event
    assert kind_of(payload) == "tool_start"


def test_pieces_of_one_run_are_joined_and_others_are_not(thread: UUID) -> None:
    other_run, other_thread = new_id(), new_id()

    def piece(text: str, run: UUID = RUN, where: UUID = thread) -> Item:
        return Item(where, USER, Think(run=run, text=text))

    end = Item(thread, USER, RunChanged(run=RUN, status="succeeded", iterations=1, cost=None))
    items = [piece("a"), piece("x", where=other_thread), piece("b"), end, piece("c"), piece("d", run=other_run)]
    texts = [getattr(item.event, "text", "|") for item in joined(items)]
    assert texts == ["ab", "x", "|", "c", "d"]


def test_the_text_on_its_way_grows_and_ends_with_the_message(thread: UUID) -> None:
    say(thread, "Half ", "way")
    partial = place(thread).partial
    assert partial is not None
    assert (partial.run, partial.text) == (RUN, "Half way")
    tell(thread, posted("user"))
    assert place(thread).partial is not None
    tell(thread, posted("agent", task=str(new_id())))
    assert place(thread).partial is not None, "a report, while its parent is talking"
    tell(thread, posted("agent"))
    assert place(thread).partial is None


@pytest.mark.parametrize("status", ["running", "cancelled"])
def test_a_change_of_the_run_ends_the_text_on_its_way(thread: UUID, status: str) -> None:
    say(thread, "Half")
    finish(thread, status=status)
    assert place(thread).partial is None


def test_what_others_say_late_of_a_run_leaves_its_text_alone(thread: UUID) -> None:
    """The web process tells that a run is queued when its worker may be writing already."""
    publish(thread, USER, Think(run=RUN, text="Half "))
    assert flush(5)
    finish(thread, status="queued")
    finish(thread, status="cancelling")
    finish(thread, run=new_id())
    publish(thread, USER, Think(run=RUN, text="way"))
    assert flush(5)
    assert _text_on_its_way(thread) == "Half way"
    assert RESET not in payloads(thread)


def test_the_text_of_another_run_takes_the_place_of_what_was_left(thread: UUID) -> None:
    say(thread, "left behind")
    other = new_id()
    say(thread, "new", run=other)
    partial = place(thread).partial
    assert partial is not None
    assert (partial.run, partial.text) == (other, "new")


def test_everything_but_text_leaves_a_note_for_the_user(thread: UUID) -> None:
    listener = redis_client().pubsub()
    listener.subscribe(user_channel(USER))
    assert listener.get_message(timeout=2)
    say(thread, "no note")
    finish(thread)
    note = listener.get_message(timeout=2)
    listener.close()
    assert note is not None
    assert orjson.loads(note["data"]) == {"type": "changed", "thread": str(thread), "event": "run"}


def test_the_stream_of_a_thread_is_capped(thread: UUID) -> None:
    say(thread, *(str(number) for number in range(1500)))
    assert 1000 <= redis_client().xlen(stream_key(thread)) <= 1200


def test_REN_03_ids_go_on_when_the_process_starts_anew(thread: UUID) -> None:
    say(thread, "a")
    before = tip(thread)
    script = f"from tests import servers; servers.start(); import django; django.setup(); from uuid import UUID; from agents.live import stream, events; stream.publish(UUID('{thread}'), 1, events.Think(run=UUID('{RUN}'), text='b')); assert stream.flush(5)"  # noqa: E501
    subprocess.run([sys.executable, "-c", script], check=True)
    assert order(tip(thread)) > order(before)


def test_a_forked_child_sends_with_a_connection_of_its_own(thread: UUID) -> None:
    say(thread, "parent ")
    child = os.fork()
    if child == 0:
        publish(thread, USER, Think(run=RUN, text="child"))
        os._exit(0 if flush(5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    partial = place(thread).partial
    assert partial is not None
    assert partial.text == "child", "a process begins a step anew"


class Outage:
    """A Redis that is away while `down`.

    asked: the threads that found it so, each of which a real one might have kept waiting.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.down = True
        self.asked = set[threading.Thread]()
        real_line, real_ping = Line, redis.Redis.ping
        monkeypatch.setattr(stream, "Line", lambda *args: self._try(real_line, *args))
        monkeypatch.setattr(redis.Redis, "ping", lambda *args, **kwargs: self._try(real_ping, *args, **kwargs))

    def _try(self, work, *args, **kwargs):  # type: ignore[no-untyped-def]
        if self.down:
            self.asked.add(threading.current_thread())
            raise redis.ConnectionError("away")
        return work(*args, **kwargs)


def test_what_others_leave_to_a_thread_that_sends_is_seen_to(thread: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event comes at the worst moment: the sender has looked at the queue and has not yet let go of the lock."""
    monkeypatch.setattr(stream, "TICK", 600)
    publisher = Publisher()
    publisher.put(change(thread, 1))
    assert publisher.flush(5)

    class Lock:
        real, late = publisher._lock, [change(thread, 3)]

        def acquire(self, *args: Any, **kwargs: Any) -> bool:
            return self.real.acquire(*args, **kwargs)

        def release(self) -> None:
            publisher.put(*self.late)
            self.late.clear()
            self.real.release()

        __enter__ = acquire

        def __exit__(self, *_: object) -> None:
            self.real.release()

    monkeypatch.setattr(publisher, "_lock", Lock())
    publisher.put(change(thread, 2))
    wait_until(lambda: len(payloads(thread)) == 3)


def test_fifty_threads_publish_and_each_is_kept_in_order(thread: UUID) -> None:
    threads, writers = [new_id() for _ in range(50)], [new_id() for _ in range(50)]

    def write(own: UUID, writer: UUID) -> None:
        for number in range(15):
            for piece in range(10):
                publish(own, USER, Think(run=writer, text=token(number * 10 + piece)))
            publish(thread, USER, RunChanged(run=writer, status="running", iterations=number, cost=None))

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(write, threads, writers))
    assert flush(20)
    for own in threads:
        assert "".join(orjson.loads(payload)["text"] for payload in payloads(own)) == tokens(0, 149)
    shared = [orjson.loads(payload) for payload in payloads(thread)]
    for writer in writers:
        assert [each["iterations"] for each in shared if each["run"] == str(writer)] == list(range(15))


def test_a_number_beyond_64_bits_is_published_too(thread: UUID) -> None:
    event = ToolStart(run=RUN, message=new_id(), action=new_id(), tool="t", arguments={"n": 2**70})
    tell(thread, event)
    assert EVENT.validate_json(payloads(thread)[0]) == event


def test_an_outage_neither_fails_nor_delays_the_producer_and_viewers_are_told(
    thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher()
    outage = Outage(monkeypatch)
    for number in range(200):
        publisher.put(Item(thread, USER, Think(run=RUN, text=f"{number} ")))
    assert not publisher.flush(0.3)
    assert [each.name for each in outage.asked] == ["live-flusher"]
    outage.down = False
    assert publisher.flush(5)
    assert RESET in payloads(thread)
    assert _text_on_its_way(thread) == "".join(f"{number} " for number in range(200))
    publisher.put(Item(thread, USER, Think(run=RUN, text="after the outage")))
    assert publisher.flush(5)
    assert _text_on_its_way(thread).endswith("199 after the outage")


def test_a_redis_that_forgets_a_text_half_way_is_told_the_whole_of_it(thread: UUID) -> None:
    publish(thread, USER, Think(run=RUN, text="Öl und "))
    assert flush(5)
    redis_client().delete(partial_key(thread), stream_key(thread))
    publish(thread, USER, Think(run=RUN, text="Wasser "))
    assert flush(5)
    publish(thread, USER, Think(run=RUN, text="mischen sich nicht."))
    assert flush(5)
    assert _text_on_its_way(thread) == "Öl und Wasser mischen sich nicht."
    assert payloads(thread)[-2] == RESET, "viewers may have come while the text was gone"


def test_an_outage_between_two_pieces_loses_nothing_of_a_text(thread: UUID) -> None:
    publisher = Publisher()
    publisher.put(Item(thread, USER, Think(run=RUN, text="before ")))
    assert publisher.flush(5)
    assert publisher._line is not None
    redis_client().delete(partial_key(thread))
    publisher._line._socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: _text_on_its_way(thread) == "before ")
    assert payloads(thread)[-1] == RESET
    publisher.put(Item(thread, USER, Think(run=RUN, text="after")))
    assert publisher.flush(5)
    assert _text_on_its_way(thread) == "before after"


def test_the_text_of_a_run_that_another_process_goes_on_with_is_not_told_again(
    thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher()
    publisher.put(Item(thread, USER, Think(run=RUN, text="of the first worker")))
    assert publisher.flush(5)
    with publisher._lock:  # somebody sends just now, so that this waits
        publisher.put(Item(thread, USER, Think(run=RUN, text=" still waits")))
        publisher.disown(thread)
    assert publisher.flush(5)
    finish(thread, status="running")
    say(thread, "of the second")
    outage = Outage(monkeypatch)
    assert publisher._line is not None
    publisher._line._socket.shutdown(socket.SHUT_RDWR)
    publisher.put(change(new_id(), 1))
    outage.down = False
    assert publisher.flush(5)
    assert _text_on_its_way(thread) == "of the second"


def _text_on_its_way(thread: UUID) -> str:
    partial = place(thread).partial
    return partial.text if partial else ""


def test_what_does_not_fit_into_memory_is_dropped_and_said(thread: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "WAITING_EVENTS", 10)
    publisher = Publisher()
    outage = Outage(monkeypatch)
    for number in range(500):
        publisher.put(change(thread, number))
    outage.down = False
    assert publisher.flush(5)
    kept = payloads(thread)
    assert len(kept) < 30
    assert RESET in kept
    last = len(kept) - kept[::-1].index(RESET)  # what found room again comes after it, without a hole
    after = [orjson.loads(payload)["iterations"] for payload in kept[last:]]
    assert after == list(range(500 - len(after), 500))


def test_a_text_of_which_a_piece_was_dropped_is_not_shown_with_a_hole(
    thread: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "WAITING_EVENTS", 10)
    publisher = Publisher()
    outage = Outage(monkeypatch)
    for number in range(50):
        publisher.put(Item(thread, USER, Think(run=RUN, text=token(number))))
    outage.down = False
    assert publisher.flush(5)
    publisher.put(Item(thread, USER, Think(run=RUN, text="behind the hole")))
    assert publisher.flush(5)
    assert place(thread).torn
    assert _text_on_its_way(thread) == ""
    publisher.put(change(thread, 2), Item(thread, USER, Think(run=RUN, text="the next step")))
    assert publisher.flush(5)
    assert _text_on_its_way(thread) == "the next step"


def test_a_server_that_forgot_the_script_is_taught_again(thread: UUID) -> None:
    finish(thread)
    redis_client().script_flush()
    finish(thread, status="lost")
    assert payloads(thread)[-1] == RESET
    finish(thread, status="seen")
    assert b"seen" in payloads(thread)[-1]


def test_without_redis_a_page_still_gets_a_place(thread: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise redis.ConnectionError("away")

    monkeypatch.setattr(redis.Redis, "eval", away)
    assert tip(thread) == ""
