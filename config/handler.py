"""Django's way through middleware and view: one hop, to one of a few threads.

Under ASGI Django makes a thread for each request, which lives as long as its response streams, and enters and leaves it
for every middleware that is not async, in both directions. Both cost more than all that the middleware does.
"""

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import sync_to_async
from django import setup
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase

# More would only wait for the database's pool; fewer would let slow pages (the test of a model) hold up the others.
THREADS = 24


class OneThreadHandler(ASGIHandler):
    """An async view runs in the loop as always, while a thread waits for its response, but not for the end of what the
    response streams."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        await self.handle(scope, receive, send)

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self._respond, thread_sensitive=False, executor=self._threads)(request)

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        """Django's own signals come in another thread, so the connection of this one is looked after here."""
        close_old_connections()
        try:
            return self.get_response(request)
        finally:
            close_old_connections()


def application() -> OneThreadHandler:
    setup(set_prefix=False)
    return OneThreadHandler()
