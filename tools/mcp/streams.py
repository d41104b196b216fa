"""Which streams of a server are listened to: those of calls. What it says outside of them is of no use to us, and how
often it is asked for that is the server's to say (the SDK believes any `retry`)."""

import asyncio
from typing import Final

import httpx2

PAUSE_SECONDS: Final = 1.0
MOST_RESUMED: Final = 100
"""Between two requests of ours."""


class CallsOnly(httpx2.AsyncBaseTransport):
    """Answers itself, with 405, where the SDK wants to listen outside of calls. The answer of a call whose stream has
    ended (Last-Event-ID) is fetched: slowly, and not for ever."""

    def __init__(self, below: httpx2.AsyncBaseTransport) -> None:
        self._below = below
        self._resumed = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            self._resumed = 0
        elif request.method == "GET":
            self._resumed += 1
            if "Last-Event-ID" not in request.headers or self._resumed > MOST_RESUMED:
                return httpx2.Response(405)
            await asyncio.sleep(PAUSE_SECONDS)
        return await self._below.handle_async_request(request)

    async def aclose(self) -> None:
        await self._below.aclose()
