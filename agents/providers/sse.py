"""Server-sent events, split from the bytes as they arrive (WHATWG HTML, section 9.2).

Works on bytes, so a character that is cut between two reads is never decoded in halves.
"""

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"


class SSE(NamedTuple):
    """One event. Several data lines are joined by a line feed."""

    data: bytes
    event: bytes = b""


class Splitter:
    """Feed it reads of any size; comments, ids and events without data come to nothing."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False
        self._started = False

    @property
    def unfinished(self) -> int:
        """Bytes that are kept of an event whose end has not come."""
        return len(self._rest)

    def feed(self, read: bytes) -> list[SSE]:
        unread = max(len(self._rest) - 1, 0)
        self._rest += self._normal(read)
        if self._rest.find(b"\n\n", unread) < 0:  # An event without end costs no more than its length.
            return []
        *blocks, rest = bytes(self._rest).split(b"\n\n")
        self._rest = bytearray(rest)
        if blocks and not self._started:
            self._started = True
            blocks[0] = blocks[0].removeprefix(BOM)
        return [sse for block in blocks if (sse := _event(block)).data]

    def end(self) -> list[SSE]:
        """The stream is over: an event that lacks its blank line counts as well, vendors forget it."""
        return self.feed(b"\n\n\n")

    def _normal(self, read: bytes) -> bytes:
        """Every line end as a line feed. A carriage return at the end of a read may still belong to a pair."""
        if self._after_return and read:
            read = read.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in read:
            self._after_return = read.endswith(b"\r")
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return read


def _event(block: bytes) -> SSE:
    if block.startswith(b"data: ") and b"\n" not in block:  # As nearly all are.
        return SSE(block[6:])
    data, event = [], b""
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ")
    return SSE(b"\n".join(data) if any(data) else b"", event)
