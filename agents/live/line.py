"""A connection to Redis on which commands leave without waiting for their answers."""

import ssl
import time
from collections import deque
from collections.abc import Iterable
from socket import socket
from typing import Final, cast
from uuid import UUID

import hiredis
import redis

from agents.live import wire

ANSWER_SECONDS: Final = 5
UNANSWERED: Final = 1000
READ_BYTES: Final = 65_536

WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Line:
    """For one caller at a time. Only `wait` waits, and the constructor, which connects.

    unanswered: the thread that each command was about, in order.
    torn: threads of whose text Redis does not have what was sent (`wire.TORN`); whoever sends makes up for that.

    Raises:
        OSError, redis.RedisError, hiredis.HiredisError: from every method. The line is then of no more use, and what
            is unanswered may be lost.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._pool = client.connection_pool
        self._connection = self._pool.get_connection()
        self._socket = cast(socket, self._connection._sock)  # what redis-py itself offers for writing may wait
        self._socket.setblocking(False)
        self._reader = hiredis.Reader()
        self._rest = b""
        self._heard = 0.0
        self.unanswered: deque[UUID] = deque()
        self.torn: list[UUID] = []

    @property
    def full(self) -> bool:
        """Whether to `wait` before more is sent: the server does not keep up."""
        return bool(self._rest) or len(self.unanswered) >= UNANSWERED

    def send(self, threads: Iterable[UUID], commands: Iterable[bytes]) -> None:
        """Write one packed command for each thread, as far as the socket takes them at once."""
        if not self.unanswered:
            self._heard = time.monotonic()
        self.unanswered.extend(threads)
        self._rest += b"".join(commands)
        try:
            self._rest = self._rest[self._socket.send(self._rest) :]
        except WOULD_BLOCK:
            return

    def receive(self) -> None:
        """Take the answers that are there. An error among them is raised, and so is a silence that is too long."""
        try:
            self._take(self._socket.recv(READ_BYTES))
        except WOULD_BLOCK:
            if self.unanswered and time.monotonic() - self._heard > ANSWER_SECONDS:
                raise TimeoutError("Redis does not answer") from None

    def wait(self) -> None:
        """Wait until everything is sent and answered."""
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.sendall(self._rest)
        self._rest = b""
        while self.unanswered:
            self._take(self._socket.recv(READ_BYTES))
        self._socket.setblocking(False)

    def close(self) -> None:
        self._connection.disconnect()  # type: ignore[no-untyped-call]
        self._pool.release(self._connection)

    def _take(self, data: bytes) -> None:
        if not data:
            raise ConnectionError("Redis has closed the connection")
        self._heard = time.monotonic()
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if isinstance(reply, hiredis.ReplyError):
                if not str(reply).startswith(wire.TORN):
                    raise reply
                self.torn.append(self.unanswered[0])
            if not isinstance(reply, hiredis.PushNotification):
                self.unanswered.popleft()
