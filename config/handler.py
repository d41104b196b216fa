"""Django's way through middleware and view: one hop, to one of a few threads.

Under ASGI Django makes a thread for each request, which lives as long as its response streams, and enters and leaves it
for its signals, for every middleware that is not async, in both directions, and for the end of the response. All this
costs more than what the middleware does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from typing import IO, Any

from django import setup
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

# More would only wait for the database's pool; fewer would let slow pages hold up the others.
THREADS = 24
# Whoever asks whether this process lives must not wait behind its pages.
HEALTH = ("/healthz", "/readyz")
HEALTH_THREADS = 2

type Receive = Callable[[], Awaitable[Any]]
type Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class OneThreadHandler(ASGIHandler):
    """From the first signal to the last, a request is in one thread. Only what is streamed asynchronously is left to
    the loop, after the request has been closed: a stream that is open for hours holds no thread and no request."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")
        self._health = ThreadPoolExecutor(HEALTH_THREADS, thread_name_prefix="health")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        response = await self._response(scope, receive)
        if response is None:
            return
        if response.streaming:
            await self._stream(response, receive, send)
        else:
            await self.send_response(response, send)

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def _response(self, scope: dict[str, Any], receive: Receive) -> HttpResponseBase | None:
        """Return None when the client has left before it had asked."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return None
        run = copy_context().run  # what one request activates, such as a time zone, is not for the next in its thread
        threads = self._health if scope["path"] in HEALTH else self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, run, self._respond, scope, body)

    def _respond(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        with closing(body):
            set_script_prefix(get_script_prefix(scope))
            request_started.send(sender=self.__class__, scope=scope)
            request, refusal = self.create_request(scope, body)
            response: Any = refusal if request is None else self.get_response(request)
            response._handler_class = self.__class__
            with closing(response):
                return _read(response)

    async def _stream(self, response: HttpResponseBase, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                leaving = tasks.create_task(self.listen_for_disconnect(receive))
                await self.send_response(response, send)
                leaving.cancel()
        except* RequestAborted:
            pass


def _read(response: HttpResponseBase) -> HttpResponseBase:
    """Read in this thread what would be read in another, such as files."""
    if not isinstance(response, StreamingHttpResponse) or response.is_async:
        return response
    whole = HttpResponse(b"".join(response), status=response.status_code)
    whole.headers, whole.cookies = response.headers, response.cookies
    return whole


def application() -> OneThreadHandler:
    setup(set_prefix=False)
    return OneThreadHandler()
