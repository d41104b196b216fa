"""A history that a server refused, made plainer rung by rung until it is taken (docs/reliability.md, invariant I16).

Nothing here is written back: a row that had to be made plainer gets a mark (`HistoryEntry.quarantine`), and whoever
reads the history for the model applies the same function again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from memory.media import without_media, without_pictures
from memory.messages import File, Message, Text, rewritten, user
from memory.text import shortened

HISTORY_REFUSED: Final = "history_refused"
"""The reason of a run that ended because no rung was plain enough."""

SHORT_RESULT: Final = 500
RESULT_LEFT_OUT: Final = "[The result of a tool call was left out here: the model's server refused it.]"


class Rung(StrEnum):
    """How plain, each plainer than the one before."""

    MEDIA = "media"
    SHORT = "short"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Remedy:
    """`whole`: applied to the whole history; else only to what no reply has shown to be acceptable, which is
    everything from the last assistant message on."""

    rung: Rung
    whole: bool


LADDER: Final = (
    Remedy(Rung.MEDIA, whole=False),
    Remedy(Rung.MEDIA, whole=True),
    Remedy(Rung.SHORT, whole=False),
    Remedy(Rung.TEXT, whole=False),
    Remedy(Rung.TEXT, whole=True),
)


def degraded(message: Message, rung: Rung) -> Message:
    """Return the message without media; with short results; or as nothing but text. The very same message when there
    is nothing to make plainer. A message never becomes empty, and calls and results only vanish together."""
    if rung is Rung.TEXT:
        return _as_text(message)
    return rewritten(without_pictures(message), without_media, _short if rung is Rung.SHORT else without_media)


def _short(result: str) -> str:
    return shortened(without_media(result), SHORT_RESULT)


def _as_text(message: Message) -> Message:
    if message.role == "tool":
        return user(RESULT_LEFT_OUT)
    names = ", ".join(call.name for call in message.calls)
    told = [block for block in without_pictures(message).blocks if isinstance(block, Text | File)]
    texts = [without_media(block.text if isinstance(block, Text) else block.told) for block in told]
    note = [f"[Calls of tools were left out here: {names}.]"] if names else []
    plain = Message(role=message.role, blocks=tuple(Text(text=text) for text in [*texts, *note]))
    return message if plain.blocks == message.blocks or not plain.blocks else plain


def apply(messages: Sequence[Message], remedy: Remedy) -> list[Message]:
    start = 0 if remedy.whole else suspect(messages)
    return [*messages[:start], *(degraded(message, remedy.rung) for message in messages[start:])]


def suspect(messages: Sequence[Message]) -> int:
    """The place of the last assistant message: a request that held everything before it was answered by it."""
    return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=0)


@dataclass(slots=True)
class View:
    """The history of one run as it is sent: as it is, until a server refuses it."""

    _start: list[Message] = field(default_factory=list)
    _remedy: Remedy | None = None
    _rungs: Iterable[Remedy] = LADDER

    def of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return what is to be sent for `messages`, which only grow from call to call."""
        return [*self._start, *messages[len(self._start) :]] if self._start else messages

    def degrade(self, messages: Sequence[Message]) -> bool:
        """Climb to the next rung that changes anything. False: there is none."""
        sent = self.of(messages)
        self._rungs = iter(self._rungs)
        for remedy in self._rungs:
            plainer = apply(sent, remedy)
            if plainer != list(sent):
                self._start, self._remedy = plainer, remedy
                return True
        return False

    def accepted(self) -> Remedy | None:
        """The server took what was sent. Returns the rung that this call had to climb to, None when it had to none."""
        remedy, self._remedy, self._rungs = self._remedy, None, LADDER
        return remedy
