"""What servers complain of, without secrets. What a program writes to its error output is read to the last byte, so
that it never waits, and kept to its last lines (case MCP-02)."""

import asyncio
from collections.abc import Iterable
from typing import Final

from pydantic import ValidationError

from memory.text import clean

KEPT: Final = 8_000
"""Of the end of all that was written, in bytes."""
SHORTEST_SECRET: Final = 6
"""Shorter values are words such as “true”, which stand everywhere."""


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with stars in place of secrets; a line of one counts as one."""
    for secret in _lines(secrets):
        text = text.replace(secret, "*" * len(secret))
    return text


def _lines(secrets: Iterable[str]) -> list[str]:
    """The longest first: a shorter one may be a part of it."""
    lines = {line.strip() for secret in secrets for line in secret.splitlines()}
    return sorted((line for line in lines if len(line) >= SHORTEST_SECRET), key=len, reverse=True)


def words_of(error: BaseException) -> str:
    """What went wrong with a server, in words, which may be its own and hold its credentials."""
    from mcp_types import PARSE_ERROR

    if isinstance(error, ValidationError) or getattr(error, "code", None) == PARSE_ERROR:
        return "its answer is not as the protocol wants it."  # such an error repeats the answer
    return clean(str(error)).strip() or type(error).__name__


class Complaints:
    """The end of what was written so far, without what must not be seen.

    secrets: what the program was given in its environment.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [line.encode() for line in _lines(secrets)]
        # So much more that one whose beginning is lost stands before what is shown.
        self._room = KEPT + max(map(len, self._secrets), default=0)
        self._tail = b""
        self.is_new = False

    def add(self, piece: bytes) -> None:
        self._tail = (self._tail + piece)[-self._room :]
        self.is_new = True

    def last(self) -> str:
        """Whole lines: what comes of the last one may be the rest of a secret."""
        self.is_new = False
        tail = self._tail[: self._tail.rfind(b"\n") + 1]
        for secret in self._secrets:
            tail = tail.replace(secret, b"*" * len(secret))
        return clean(tail[-KEPT:].decode(errors="replace")).strip()

    async def drain(self, source: asyncio.StreamReader) -> None:
        """Read until nobody can write any more."""
        while piece := await source.read(65_536):
            self.add(piece)
        self.add(b"\n")
