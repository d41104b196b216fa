"""A Redis that is killed and comes back empty, and a client of the last century."""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.test import override_settings

from agents.live.events import Think
from agents.live.hub import hub
from agents.live.snapshot import tip
from agents.live.stream import flush, publish, redis_client
from config.embedded.programs import valkey_program
from goals.models import Goal
from memory.ids import new_id
from tests.agents.live.looks import RUN, USER, off_loop, read, say, text_of
from tests.factories import GoalFactory, bearer
from tests.processes import wait_until, web


class Valkey:
    """A server of its own, to be killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self) -> None:
        program, path = str(valkey_program(None)), str(self.path)
        command = [program, "--port", "0", "--unixsocket", path, "--save", "", "--loglevel", "nothing"]
        self._process = subprocess.Popen(command)
        wait_until(self._answers)

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
        redis_client.cache_clear()
        yield server
        flush(5)
    redis_client.cache_clear()
    server.kill()


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
