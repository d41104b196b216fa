"""What a program writes to its error output: read to the last byte, so that it never waits, and kept to its last lines
(case MCP-02)."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from memory.text import clean

KEPT: Final = 4_000
"""Of the end of all that was written, in bytes."""


class Complaints:
    """The end of what was written so far."""

    def __init__(self) -> None:
        self._tail = b""

    def last(self) -> str:
        return clean(self._tail.decode(errors="replace")).strip()

    def drain(self, source: int) -> None:
        """Read until nobody can write any more."""
        while piece := os.read(source, 65_536):
            self._tail = (self._tail + piece)[-KEPT:]
        os.close(source)


@contextmanager
def complaints() -> Iterator[tuple[Complaints, TextIO]]:
    """What a program will have written, and where it writes it."""
    source, sink = os.pipe()
    said = Complaints()
    reader = threading.Thread(target=said.drain, args=(source,), daemon=True, name="mcp complaints")
    reader.start()
    with os.fdopen(sink, "w") as pipe:
        yield said, pipe
