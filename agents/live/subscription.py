"""The pub/sub connection of a web process: RESP over asyncio, without a client library in the hot path.

It is faster than redis.asyncio by a third of the lag (docs/performance.md) because a message is only split and handed
on. Everything else goes through the ordinary client.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import hiredis
from redis.connection import parse_url

logger = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 5
PING_SECONDS: Final = 20
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class _Reader(asyncio.Protocol):
    def __init__(self, subscription: "Subscription") -> None:
        self._subscription = subscription
        self._reader = hiredis.Reader()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            self._subscription.received(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)


class Subscription:
    """Channels of one Redis server, kept through outages.

    Args:
        deliver: called in the loop with (channel, data) for each message.
        connected: called in the loop after each connection, when all channels are subscribed again.
        lost: called in the loop when such a connection has ended.
    """

    def __init__(
        self,
        url: str,
        deliver: Callable[[bytes, bytes], None],
        connected: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self._url = url
        self._deliver = deliver
        self._connected = connected
        self._lost = lost
        self.is_up = False
        self._transport: asyncio.WriteTransport | None = None
        self._channels: dict[bytes, asyncio.Future[None]] = {}
        self._asked: deque[asyncio.Future[None]] = deque()
        self._heard = True
        self._tried = asyncio.Event()

    async def run(self) -> None:
        """Stay connected until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._session()
                pause = FIRST_PAUSE
            except (OSError, TimeoutError, hiredis.HiredisError) as problem:
                logger.warning("live events: no connection to Redis: %s", problem)
            self._tried.set()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def subscribe(self, channel: bytes) -> bool:
        """Return True once the server has confirmed; False when there is no connection (it will be made up for)."""
        if channel not in self._channels:
            self._ask(channel)
        await self._tried.wait()
        if self._transport is None:
            return False
        try:
            await asyncio.wait_for(asyncio.shield(self._channels[channel]), CONNECT_SECONDS)
        except TimeoutError:
            return False
        return True

    def unsubscribe(self, channel: bytes) -> None:
        if self._channels.pop(channel, None) is not None:
            self._write(b"UNSUBSCRIBE", channel)

    def received(self, reply: Any) -> None:
        self._heard = True
        if isinstance(reply, hiredis.ReplyError):
            logger.error("live events: Redis refuses: %s", reply)
        elif not isinstance(reply, list):
            return
        elif reply[0] == b"message":
            self._deliver(reply[1], reply[2])
        elif reply[0] == b"subscribe" and self._asked:
            self._asked.popleft().set_result(None)

    async def _session(self) -> None:
        transport, reader = await asyncio.wait_for(self._connect(), CONNECT_SECONDS)
        try:
            self._transport, self._heard = transport, True
            await asyncio.wait_for(self._resubscribe(), CONNECT_SECONDS)
            self.is_up = True
            self._connected()
            self._tried.set()
            await self._watch(reader)
        finally:
            self._transport = None
            transport.abort()
            if self.is_up:
                self.is_up = False
                self._lost()

    async def _connect(self) -> tuple[asyncio.WriteTransport, _Reader]:
        where: dict[str, Any] = parse_url(self._url)  # type: ignore[no-untyped-call]
        loop = asyncio.get_running_loop()
        if "path" in where:
            transport, reader = await loop.create_unix_connection(lambda: _Reader(self), where["path"])
        else:
            secure = ssl.create_default_context() if self._url.startswith("rediss:") else None
            host, port = where.get("host", "localhost"), where.get("port", 6379)
            transport, reader = await loop.create_connection(lambda: _Reader(self), host, port, ssl=secure)
        if "password" in where:
            name = [where["username"].encode()] if "username" in where else []
            transport.write(_packed(b"AUTH", *name, where["password"].encode()))
        return transport, reader

    async def _resubscribe(self) -> None:
        self._asked.clear()
        for channel in list(self._channels):
            self._ask(channel)
        await asyncio.gather(*self._channels.values())

    def _ask(self, channel: bytes) -> None:
        """Subscribe, now or at the next connection. Confirmations come in the order of the requests."""
        self._channels[channel] = waiting = asyncio.get_running_loop().create_future()
        if self._transport is not None:
            self._asked.append(waiting)
            self._write(b"SUBSCRIBE", channel)

    async def _watch(self, reader: _Reader) -> None:
        """Return when the connection is lost, or has been silent although it was asked for a sign of life."""
        while self._heard:
            self._heard = False
            self._write(b"PING")
            done, _ = await asyncio.wait({reader.lost}, timeout=PING_SECONDS)
            if done:
                return

    def _write(self, *words: bytes) -> None:
        if self._transport is not None:
            self._transport.write(_packed(*words))


def _packed(*words: bytes) -> bytes:
    """Write a command as RESP has it: an array of counted strings."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
