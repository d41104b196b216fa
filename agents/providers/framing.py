"""Where the body of an answer ends (RFC 9112, section 6.3): reads go in, content comes out."""

import re
from http.client import HTTPException, HTTPResponse
from typing import Protocol

# What stands before a chunk, from the line end of the one before it; without a size, the end and its trailers.
_HEAD = re.compile(
    rb"""\r\n (?: (0*[1-9a-f][0-9a-f]{0,14}) [ \t]*(?:;[^\r\n]*)?
              | 0+ [ \t]*(?:;[^\r\n]*)? (?:\r\n[^\r\n]+)* \r\n ) \r\n""",
    re.VERBOSE | re.IGNORECASE,
)
_LONGEST_HEAD = 65_536


class Framing(Protocol):
    """over: the body is complete. rest: what was read and is not content, at the end none of this answer's bytes."""

    over: bool
    rest: bytes

    def feed(self, read: bytes) -> bytes:
        """Return the content of a read; an empty read is the end of the connection.

        Raises: http.client.HTTPException when the body is not whole, or not what it should be.
        """
        ...


def framing_of(answer: HTTPResponse) -> Framing:
    return Chunks() if answer.chunked else Plain(answer.length)


class Plain:
    """A body of `length` bytes; None when it lasts as long as the connection."""

    def __init__(self, length: int | None) -> None:
        self.over = length == 0
        self.rest = b""
        self._left = length

    def feed(self, read: bytes) -> bytes:
        if self._left is None:
            self.over = not read
            return read
        if not read:
            raise HTTPException(f"{self._left} bytes of the answer are missing")
        content, self.rest = read[: self._left], read[self._left :]
        self._left -= len(content)
        self.over = not self._left
        return content


class Chunks:
    """A body in chunks. All that one read holds comes out together; http.client would hand out one chunk at a time."""

    def __init__(self) -> None:
        self.over = False
        self.rest = b"\r\n"  # As if a chunk had just ended, so that each begins in the same way.
        self._left = 0

    def feed(self, read: bytes) -> bytes:
        if not read:
            raise HTTPException("the last chunk of the answer is missing")
        data, at, pieces = self.rest + read, 0, list[bytes]()
        while not self.over:
            piece = data[at : at + self._left]
            pieces.append(piece)
            at, self._left = at + len(piece), self._left - len(piece)
            head = None if self._left else _HEAD.match(data, at)
            if head is None:
                break
            at, self._left, self.over = head.end(), int(head[1] or b"0", 16), head[1] is None
        self.rest = data[at:]
        self._check()
        return b"".join(pieces)

    def _check(self) -> None:
        """Refuse at once what can be no beginning of a chunk, instead of waiting for the rest of it."""
        has_line = self.rest.find(b"\r\n", 2) >= 0 and not self.rest.startswith(b"\r\n0")
        is_other = has_line or not b"\r\n".startswith(self.rest[:2]) or len(self.rest) > _LONGEST_HEAD
        if is_other and not self.over:
            raise HTTPException("the answer is not in chunks")
