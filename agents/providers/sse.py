"""Server-sent events, split from the bytes as they arrive (WHATWG HTML, section 9.2).

Works on bytes, so a character that is cut between two reads is never decoded in halves.
"""

from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SSE:
    """One event. Several data lines are joined by a line feed."""

    data: bytes
    event: bytes = b""


class Splitter:
    """Feed it reads of any size; comments, ids and events without data come to nothing."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_return = False
        self._started = False
        self._event = b""
        self._data: list[bytes] = []

    def feed(self, read: bytes) -> list[SSE]:
        *lines, self._rest = (self._rest + self._normal(read)).split(b"\n")
        found: list[SSE] = []
        for line in lines:
            self._take(line, found)
        return found

    def end(self) -> list[SSE]:
        """The stream is over: an event that lacks its blank line counts as well, vendors forget it."""
        found: list[SSE] = []
        self._take(self._rest, found)
        self._take(b"", found)
        return found

    def _normal(self, read: bytes) -> bytes:
        """Every line end as a line feed. A carriage return at the end of a read may still belong to a pair."""
        if self._after_return and read:
            read = read.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in read:
            self._after_return = read.endswith(b"\r")
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return read

    def _take(self, line: bytes, found: list[SSE]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(BOM)
        if not line:
            if any(self._data):
                found.append(SSE(b"\n".join(self._data), self._event))
            self._event, self._data = b"", []
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
