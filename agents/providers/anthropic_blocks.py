"""The blocks of a Messages reply while they come."""

from abc import ABC, abstractmethod

from pydantic import JsonValue

from agents.providers.arguments import finished
from agents.providers.base import TextDelta, ThinkingDelta
from agents.providers.pieces import Pieces
from memory.encoding import dumps
from memory.messages import Block, Text, Thinking
from memory.text import clean

type Payload = dict[str, JsonValue]


class Part(ABC):
    """One block. What it is fed is taken in as far as there is `room` (characters), and its length is returned."""

    def __init__(self) -> None:
        self._pieces = Pieces()

    @abstractmethod
    def open(self, block: Payload, room: int) -> int:
        """Take in what the block begins with, which is all of it in an answer that is not streamed."""

    @abstractmethod
    def feed(self, delta: Payload, room: int) -> int: ...

    @abstractmethod
    def delta(self, text: str) -> TextDelta | ThinkingDelta: ...

    @abstractmethod
    def block(self, used: set[str], *, cut: bool) -> Block | None:
        """Return it as it is kept, None when there is nothing in it. `used`: as of `arguments.finished`."""

    def take(self) -> str:
        """Return what came since the last time and may be shown now."""
        return self._pieces.take()

    def end(self) -> str:
        return self._pieces.end()


class TextSoFar(Part):
    def open(self, block: Payload, room: int) -> int:
        return self.feed(block, room)

    def feed(self, delta: Payload, room: int) -> int:
        text = _string(delta.get("text"))
        self._pieces.feed(text[: max(room, 0)])
        return len(text)

    def delta(self, text: str) -> TextDelta:
        return TextDelta(text)

    def block(self, used: set[str], *, cut: bool) -> Text | None:
        return Text(text=self._pieces.text) if self._pieces.text else None


class ThoughtSoFar(Part):
    """Kept exactly as it came, or else without its seal: half of it must never go back (case PRV-08)."""

    def __init__(self, maker: str) -> None:
        super().__init__()
        self._maker = maker
        self._text: list[str] = []
        self._seal: list[str] = []
        self._redacted = self._is_cut = False

    def open(self, block: Payload, room: int) -> int:
        self._redacted = block.get("type") == "redacted_thinking"
        return self.feed(block, room)

    def feed(self, delta: Payload, room: int) -> int:
        text = _string(delta.get("thinking"))
        seal = _string(delta.get("data" if self._redacted else "signature"))
        self._is_cut = self._is_cut or len(text) + len(seal) > room
        self._text.append(text[:room])
        self._pieces.feed(text[:room])
        self._seal.append(seal[:room])
        return len(text) + len(seal)

    def delta(self, text: str) -> ThinkingDelta:
        return ThinkingDelta(text)

    def block(self, used: set[str], *, cut: bool) -> Thinking | None:
        text, seal = "".join(self._text), "".join(self._seal)
        if seal and not self._is_cut and _is_storable(text) and _is_storable(seal):
            return Thinking(text=clean(text), signature=seal, redacted=self._redacted, maker=self._maker)
        return Thinking(text=self._pieces.text) if self._pieces.text else None


class CallSoFar(Part):
    def __init__(self) -> None:
        super().__init__()
        self._id = self._name = ""
        self._given: JsonValue = None
        self._arguments: list[str] = []

    def open(self, block: Payload, room: int) -> int:
        self._id, self._name = _string(block.get("id")), _string(block.get("name"))
        given = dumps(block["input"]).decode() if block.get("input") else ""
        self._arguments.append(given[: max(room, 0)])
        return len(self._name) + len(given)

    def feed(self, delta: Payload, room: int) -> int:
        text = _string(delta.get("partial_json"))
        self._arguments.append(text[: max(room, 0)])
        return len(text)

    def delta(self, text: str) -> TextDelta:
        return TextDelta(text)

    def block(self, used: set[str], *, cut: bool) -> Block:
        return finished(self._id, self._name, "".join(self._arguments), used, cut=cut)


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _is_storable(text: str) -> bool:
    """Whether the database gives it back as it is. The halves of a pair may have come apart, which is no change."""
    stored = clean(text)
    return stored == text or stored.encode("utf-16") == text.encode("utf-16", "surrogatepass")
