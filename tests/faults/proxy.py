"""A link that can be broken: a TCP port in front of a server, that refuses, resets, delays, cuts or swallows."""

import asyncio
import re
import socket
import struct
import threading
from enum import Enum
from pathlib import Path
from typing import Self

type Upstream = Path | tuple[str, int]


class Mode(Enum):
    PASS = "pass"
    REFUSE = "refuse"
    HOLE = "hole"


class Cut:
    """Waits for a piece on its way to the server that holds `wanted`, the `skip`th after the first, and cuts there:
    before it is passed on, or after, when the server has done it and its answer is lost."""

    def __init__(self, wanted: re.Pattern[bytes], *, after: bool, skip: int = 0) -> None:
        self.wanted, self.after, self.skip = wanted, after, skip
        self.done = threading.Event()

    def meets(self, piece: bytes) -> bool:
        if self.done.is_set() or not self.wanted.search(piece):
            return False
        self.skip -= 1
        if self.skip >= 0:
            return False
        self.done.set()
        return True


class Proxy:
    """Runs in a thread of its own while it is entered. The state may be set from any thread."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream, self.port = upstream, 0
        self.mode, self.delay = Mode.PASS, 0.0
        self.cuts: list[Cut] = []
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="proxy").start()
        self.port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def reset(self) -> None:
        """Break every connection that there is, as a router does that has forgotten them."""
        asyncio.run_coroutine_threadsafe(self._reset(), self._loop).result()

    def heal(self) -> None:
        """As if nothing had been: new connections work, and those that were swallowed are gone."""
        was, self.mode, self.delay = self.mode, Mode.PASS, 0.0
        self.cuts.clear()
        if was is not Mode.PASS:
            self.reset()

    async def _start(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _reset(self) -> None:
        for writer in list(self._writers):
            _abort(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await self._connect()
        except OSError:
            _abort(writer)
            return
        both = {writer, up_writer}
        self._writers |= both
        await asyncio.gather(self._pump(reader, up_writer, both, upward=True), self._pump(up_reader, writer, both))
        self._writers -= both

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.mode is Mode.REFUSE:
            raise ConnectionRefusedError
        if isinstance(self.upstream, Path):
            return await asyncio.open_unix_connection(self.upstream)
        return await asyncio.open_connection(*self.upstream)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        both: set[asyncio.StreamWriter],
        *,
        upward: bool = False,
    ) -> None:
        try:
            while piece := await reader.read(262_144):
                while self.mode is Mode.HOLE:
                    await asyncio.sleep(0.02)
                if self.delay:
                    await asyncio.sleep(self.delay)
                cut = next((cut for cut in list(self.cuts) if upward and cut.meets(piece)), None)
                if cut is None or cut.after:
                    writer.write(piece)
                    await writer.drain()
                if cut is not None:
                    await asyncio.sleep(0.1 if cut.after else 0)  # the server does what it was told
                    for each in both:
                        _abort(each)
                    return
        except OSError:
            pass
        for each in both:
            each.close()


def _abort(writer: asyncio.StreamWriter) -> None:
    """Close with a RST, so that the other side notices at once."""
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0 and raw.family != socket.AF_UNIX:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
