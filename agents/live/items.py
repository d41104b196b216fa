"""What waits to be sent, and how pieces of text become one, or a long one several."""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from agents.live.events import Event, Think

LONGEST: Final = 4096
"""Characters of a text on its way."""


class Disowned(Event):
    """Is not sent: what this process has said of a step until then is of no more use."""

    type: str = "disowned"
    run: UUID | None = None


class Item(NamedTuple):
    thread_id: UUID
    user_id: int
    event: Event


def joined(items: Iterable[Item]) -> list[Item]:
    """Join each piece of text with the one before it in its thread, when both belong to the same run, up to LONGEST."""
    groups: list[list[Item]] = []
    last: dict[UUID, list[Item]] = {}
    for item in items:
        group = last.get(item.thread_id)
        if group is not None and _goes_on(group[0].event, item.event):
            group.append(item)
        else:
            last[item.thread_id] = group = [item]
            groups.append(group)
    return [item for group in groups for item in _pieces(group)]


def _goes_on(before: Event, event: Event) -> bool:
    return isinstance(before, Think) and isinstance(event, Think) and before.run == event.run


def _pieces(group: list[Item]) -> list[Item]:
    """Return a group as one item, or as several when its text is long: the stream keeps a number of events, not of
    bytes, and whoever resumes reads them all."""
    text = "".join(piece.event.text for piece in group if isinstance(piece.event, Think))
    if len(group) == 1 and len(text) <= LONGEST:
        return group
    parts = [text[at : at + LONGEST] for at in range(0, len(text), LONGEST)]
    return [group[0]._replace(event=group[0].event.model_copy(update={"text": part})) for part in parts]
