"""What a command writes, as much of it as a model reads: its beginning, its end, and how much there was between (case
FIL-04)."""

import re
from dataclasses import dataclass, field
from typing import Final

from memory.text import clean

# Bytes of the beginning and of the end.
HEAD: Final = 6_000
TAIL: Final = 10_000
# Colours, titles, movements of the cursor: sequences of a terminal, and single characters that only it obeys.
_SEQUENCES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
# A line that is written again and again: only what it came to is left.
_OVERWRITTEN: Final = re.compile(r"[^\n\r]*\r(?!\n)")


@dataclass(slots=True)
class Output:
    """Takes bytes as they come and holds HEAD + TAIL of them at most."""

    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = HEAD - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece[-TAIL:]
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    @property
    def dropped(self) -> int:
        """Bytes between the beginning and the end."""
        return self.total - len(self._head) - min(len(self._tail), TAIL)

    def text(self) -> str:
        if not self.dropped:
            return _plain(self._head + self._tail[-TAIL:])
        gap = f"\n… {self.dropped:,} bytes are left out here …\n"
        return _plain(self._head) + gap + _plain(self._tail[-TAIL:])


def _plain(data: bytes | bytearray) -> str:
    """Text without what only a terminal understands. A character that was cut in two is replaced."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return clean(_SEQUENCES.sub("", _OVERWRITTEN.sub("", text)))
