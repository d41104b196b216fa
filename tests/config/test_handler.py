"""How a request goes through Django, seen from an ASGI server."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.staticfiles import finders
from django.core.signals import request_finished, request_started
from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path
from django.utils import timezone

from config.handler import OneThreadHandler

left = threading.Event()


def zoned(request: HttpRequest) -> HttpResponse:
    before = timezone.get_current_timezone_name()
    timezone.activate("Europe/Oslo")
    return HttpResponse(f"{before} {threading.current_thread().name}")


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    connections["default"].ensure_connection()
    return StreamingHttpResponse(_ticks())


async def _ticks() -> AsyncIterator[bytes]:
    try:
        yield b"one"
        await asyncio.sleep(60)
    finally:
        left.set()


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("no answer")


urlpatterns = [path("zoned", zoned), path("streamed", streamed), path("broken", broken)]


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneThreadHandler]:
    """A handler with one thread, so that one request meets what another left behind."""
    monkeypatch.setattr("config.handler.THREADS", 1)
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=["whitenoise.middleware.WhiteNoiseMiddleware"]):
        handler = OneThreadHandler()
    yield handler
    handler._threads.shutdown()


def asked(handler: OneThreadHandler, address: str) -> ApplicationCommunicator:
    scope = {
        "type": "http", "method": "GET", "path": address, "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": ["127.0.0.1", 1], "server": ["127.0.0.1", 2],
    }  # fmt: skip
    return ApplicationCommunicator(handler, scope)


async def answer(handler: OneThreadHandler, address: str) -> tuple[int, bytes]:
    client = asked(handler, address)
    await client.send_input({"type": "http.request", "body": b""})
    start = await client.receive_output(5)
    body = await client.receive_output(5)
    await client.wait(5)
    return start["status"], body["body"]


@override_settings(ROOT_URLCONF=__name__)
async def test_what_a_request_activates_is_not_there_for_the_next(handler: OneThreadHandler) -> None:
    first, second = await answer(handler, "/zoned"), await answer(handler, "/zoned")
    assert first == second
    assert b"Oslo" not in first[1]


@override_settings(ROOT_URLCONF=__name__)
async def test_a_view_that_fails_is_answered(handler: OneThreadHandler) -> None:
    assert (await answer(handler, "/broken"))[0] == 500


async def test_a_file_comes_as_it_is(handler: OneThreadHandler) -> None:
    found = finders.find("app.css")
    assert isinstance(found, str)
    client = asked(handler, "/static/app.css")
    await client.send_input({"type": "http.request", "body": b""})
    headers = dict((await client.receive_output(5))["headers"])
    assert headers[b"Content-Type"].startswith(b"text/css")
    body = b""
    more = True
    while more:
        part: dict[str, Any] = await client.receive_output(5)
        body, more = body + part["body"], part["more_body"]
    assert body == await asyncio.to_thread(Path(found).read_bytes)


@pytest.mark.django_db(transaction=True)
@override_settings(ROOT_URLCONF=__name__)
async def test_an_open_stream_holds_no_connection_and_ends_when_its_client_leaves(handler: OneThreadHandler) -> None:
    client = asked(handler, "/streamed")
    await client.send_input({"type": "http.request", "body": b""})
    assert (await client.receive_output(5))["status"] == 200
    assert (await client.receive_output(5))["body"] == b"one"
    idle = await asyncio.wrap_future(handler._threads.submit(lambda: connections["default"].connection is None))
    assert idle
    left.clear()
    await client.send_input({"type": "http.disconnect"})
    await client.wait(5)
    assert left.is_set()


@override_settings(ROOT_URLCONF=__name__)
async def test_the_signals_of_a_request_come_once_in_its_thread(handler: OneThreadHandler) -> None:
    seen: list[str] = []

    def started(**_: object) -> None:
        seen.append(f"started {threading.current_thread().name}")

    def finished(**_: object) -> None:
        seen.append(f"finished {threading.current_thread().name}")

    request_started.connect(started)
    request_finished.connect(finished)
    try:
        await answer(handler, "/zoned")
    finally:
        request_started.disconnect(started)
        request_finished.disconnect(finished)
    assert seen == ["started request_0", "finished request_0"]


async def test_a_client_that_leaves_before_it_has_asked_gets_nothing(handler: OneThreadHandler) -> None:
    client = asked(handler, "/zoned")
    await client.send_input({"type": "http.disconnect"})
    await client.wait(5)
    assert await client.receive_nothing()
