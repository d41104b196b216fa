"""What this process has said of the steps that its runs are writing.

Redis keeps the same for whoever comes to look (`wire.SEND`), and may lose it. Then a text would go on in the middle, so
whoever sends can always tell the whole of it again.
"""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from agents.live import wire
from agents.live.events import Think, ends_text
from agents.live.items import Disowned, Item

MOST: Final = 1000
"""Texts at a time. More than a process has runs; what a lost run has left behind goes first."""


@dataclass(slots=True)
class Text:
    """The text of a step so far. `size` is in bytes, as Redis counts. Torn: a piece of it is lost for good, perhaps the
    first, so that its run is not known."""

    run: UUID | None
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    torn: bool = False


class Texts:
    """For one caller at a time, who takes up each event once, in the order in which they happened."""

    def __init__(self) -> None:
        self._texts: dict[UUID, Text] = {}
        self._writes = False

    def take(self, item: Item) -> int | None:
        """Take up an event, sent or lost. Returns the bytes of its text that were before it; None when it is not one to
        send."""
        if isinstance(item.event, Think):
            return self._grown(item.thread_id, item.event)
        if isinstance(item.event, Disowned):
            self._forget(item.thread_id)
            return None
        text = self._texts.get(item.thread_id)
        if text is not None and text.run in (item.event.run, None) and ends_text(item.event.__dict__):
            self._forget(item.thread_id)
        return 0

    def tear(self, thread_id: UUID) -> None:
        """Events of a thread were never taken up."""
        self._texts.setdefault(thread_id, Text(None)).torn = True
        self._keep_few()

    def _forget(self, thread_id: UUID) -> None:
        self._texts.pop(thread_id, None)

    def threads(self) -> list[UUID]:
        return list(self._texts)

    def after_gap(self, thread_id: UUID) -> bytes:
        """Return the packed call that makes up for lost events of a thread. Where nothing is known of a text, only a
        process that never writes any knows that it has lost none."""
        text = self._texts.get(thread_id)
        if text is not None and not text.torn:
            return wire.gap(thread_id, run=text.run, text="".join(text.pieces))
        return wire.gap(thread_id, spoils=self._writes)

    def _grown(self, thread_id: UUID, event: Think) -> int:
        self._writes = True
        text = self._texts.get(thread_id)
        if text is None or text.run not in (event.run, None):
            text = self._texts[thread_id] = Text(event.run)
            self._keep_few()
        before = text.size
        text.pieces.append(event.text)
        text.size += len(event.text.encode())
        return before

    def _keep_few(self) -> None:
        if len(self._texts) > MOST:
            self._forget(next(iter(self._texts)))
