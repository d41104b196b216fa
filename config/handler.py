"""Django's way through middleware and view, in one thread per request.

Under ASGI Django enters and leaves a thread for every middleware that is not async, in both directions: a dozen hops,
which cost more than all that the middleware does.
"""

from asgiref.sync import sync_to_async
from django import setup
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http.response import HttpResponseBase


class OneThreadHandler(ASGIHandler):
    """An async view runs in the loop as always, while its request's thread waits for the response (not for the end of
    what the response streams)."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: ASGIRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)


def application() -> OneThreadHandler:
    setup(set_prefix=False)
    return OneThreadHandler()
