"""What waits to be sent, and how pieces of text become one."""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from agents.live.events import Event, Think


class Item(NamedTuple):
    thread_id: UUID
    user_id: int
    event: Event


def joined(items: Iterable[Item]) -> list[Item]:
    """Join each piece of text with the one before it in its thread, when both belong to the same run."""
    groups: list[list[Item]] = []
    last: dict[UUID, list[Item]] = {}
    for item in items:
        group = last.get(item.thread_id)
        if group is not None and _goes_on(group[0].event, item.event):
            group.append(item)
        else:
            last[item.thread_id] = group = [item]
            groups.append(group)
    return [group[0] if len(group) == 1 else _whole(group) for group in groups]


def _goes_on(before: Event, event: Event) -> bool:
    return isinstance(before, Think) and isinstance(event, Think) and before.run == event.run


def _whole(pieces: list[Item]) -> Item:
    text = "".join(piece.event.text for piece in pieces if isinstance(piece.event, Think))
    return pieces[0]._replace(event=pieces[0].event.model_copy(update={"text": text}))
