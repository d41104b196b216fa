"""A Redis that is killed and comes back empty, and a client of the last century."""

import contextlib
import itertools
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import orjson
import pytest
from django.test import override_settings

from agents.live import line, stream
from agents.live.events import RunChanged, Think
from agents.live.hub import hub
from agents.live.keys import RESET
from agents.live.snapshot import tip
from agents.live.stream import flush, publish, redis_client
from config.embedded.programs import valkey_program
from goals.models import Goal
from memory.ids import new_id
from tests.agents.live.looks import RUN, USER, off_loop, payloads, read, say, text_of
from tests.factories import GoalFactory, bearer
from tests.processes import wait_until, web

pytestmark = pytest.mark.programs


class Valkey:
    """A server of its own, to be killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self) -> None:
        program, path = str(valkey_program(None)), str(self.path)
        command = [program, "--port", "0", "--unixsocket", path, "--save", "", "--loglevel", "nothing"]
        self._process = subprocess.Popen(command)
        wait_until(self._answers)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as attempt:
            attempt.connect(str(self.path))
            return True
        return False


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path / "v.sock")
    server.start()
    with override_settings(REDIS_URL=f"unix://{server.path}"):
        stream._forget()
        yield server
        flush(5)
    stream._forget()
    server.kill()


@pytest.fixture
def threads(valkey: Valkey) -> list[UUID]:
    """Threads that viewers of this Redis know: one event of each was sent and may not have been answered yet."""
    found = [new_id() for _ in range(10)]
    for thread in found:
        publish(thread, USER, change(1))
    return found


def change(number: int) -> RunChanged:
    return RunChanged(run=RUN, status="running", iterations=number, cost=None)


@pytest.mark.usefixtures("closed_hub")
async def test_REN_03_a_redis_that_comes_back_empty_makes_viewers_start_over(valkey: Valkey) -> None:
    thread: UUID = new_id()
    async with hub().attach(thread, tip(thread)) as feed:
        await off_loop(say, thread, "before")
        assert text_of(await read(feed, 1)) == "before"
        valkey.kill()
        publish(thread, USER, Think(run=RUN, text="lost"))
        await off_loop(valkey.start)
        assert (await read(feed, 1, within=10))[0].is_reset
        assert await off_loop(flush, 10)
        await off_loop(say, thread, "after")
        arrivals = await read(feed, 1)
        while arrivals[-1].is_reset:  # one for the lost connection of the hub, one for what the producer lost
            arrivals = await read(feed, 1)
        assert text_of(arrivals) == "after"


@pytest.mark.faults
def test_a_refusal_that_is_found_late_makes_viewers_start_over(valkey: Valkey, threads: list[UUID]) -> None:
    assert flush(5)
    redis_client().config_set("maxmemory", "1")
    for thread in threads:
        publish(thread, USER, change(2))
    assert not flush(1)
    redis_client().config_set("maxmemory", "0")
    assert flush(10)
    assert [payloads(thread)[-1] for thread in threads] == [RESET] * len(threads)


@pytest.mark.faults
def test_a_redis_that_stands_still_delays_nobody_and_loses_nothing(
    valkey: Valkey, threads: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "ANSWER_SECONDS", 600)  # else it stands still for too long on a slow machine
    assert flush(5)
    valkey.freeze()
    for number in range(2, 1002):
        publish(threads[0], USER, Think(run=RUN, text=f"{number} " * 100))
    publish(threads[0], USER, change(1002))
    assert not flush(0.5)
    valkey.thaw()
    assert flush(10)
    come = payloads(threads[0])
    assert "".join(orjson.loads(each).get("text", "") for each in come) == "".join(
        f"{number} " * 100 for number in range(2, 1002)
    )
    assert orjson.loads(come[-1])["iterations"] == 1002
    assert len(come) < 900, "pieces were joined while Redis did not take them"


@pytest.mark.faults
def test_a_redis_that_stands_still_for_too_long_makes_viewers_start_over(
    valkey: Valkey, threads: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "ANSWER_SECONDS", 0.3)
    assert flush(5)
    valkey.freeze()
    publish(threads[0], USER, change(2))
    assert not flush(1.5)
    valkey.thaw()
    assert flush(10)
    assert RESET in payloads(threads[0])
    assert RESET not in payloads(threads[1])


@pytest.mark.faults
def test_a_redis_that_is_killed_while_all_publish_makes_all_viewers_start_over(
    valkey: Valkey, threads: list[UUID]
) -> None:
    halt = threading.Event()

    def write(thread: UUID) -> int:
        for number in itertools.count():
            publish(thread, USER, Think(run=RUN, text=f"{number} "))
            if halt.wait(0.0005):
                return number
        return 0

    with ThreadPoolExecutor(len(threads)) as pool:
        writing = [pool.submit(write, thread) for thread in threads]
        wait_until(lambda: all(len(payloads(thread)) > 5 for thread in threads))
        valkey.kill()
        time.sleep(0.3)
        valkey.start()
        halt.set()
        assert all(future.result(5) for future in writing)
    assert flush(10)
    assert all(RESET in payloads(thread) for thread in threads)
    publish(threads[0], USER, change(3))
    assert flush(5)
    assert orjson.loads(payloads(threads[0])[-1])["iterations"] == 3


@pytest.mark.django_db(transaction=True)
def test_REN_04_c_a_client_of_http_1_0_gets_its_events_at_once() -> None:
    goal: Goal = GoalFactory.create()
    token = bearer(goal.user)["Authorization"]
    with web() as address:
        host, port = urlsplit(address).hostname, urlsplit(address).port
        with socket.create_connection((host, port), timeout=5) as client:
            request = (
                f"GET /api/v1/goals/{goal.pk}/events HTTP/1.0\r\nHost: {host}:{port}\r\nAuthorization: {token}\r\n\r\n"
            )
            client.sendall(request.encode())
            come = _read_until(client, b"event: reset")
            assert come.startswith(b"HTTP/1.")
            assert b"200 OK" in come
            say(goal.thread_id, "Hi there")
            assert b"Hi there" in _read_until(client, b"Hi there")


def _read_until(client: socket.socket, wanted: bytes) -> bytes:
    come = b""
    while wanted not in come:
        piece = client.recv(65536)
        assert piece, come
        come += piece
    return come
