"""Files as an undo sees them: what they were and what they are (mission D8)."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from tools.changes import Change, Image, UndoRecord
from tools.sandbox.staging import Content

KIND: Final = "file"


def image(thread_id: UUID, content: Content | None) -> Image | None:
    """A file as an undo compares it."""
    if content is None:
        return None
    return {"thread": str(thread_id), "sha256": content.sha256, "size": content.size, "mode": f"{content.mode:03o}"}


def change(thread_id: UUID, path: str, before: Content | None, after: Content | None) -> Change:
    """What was done to a file: of an update only what differs."""
    was, now = image(thread_id, before), image(thread_id, after)
    if was is not None and now is not None:
        differing = [name for name in was if was[name] != now[name]]
        was, now = ({name: each[name] for name in differing} for each in (was, now))
    return Change(kind=KIND, id=f"{thread_id}/{path}", name=path, before=was, after=now)


def recorded(changes: Iterable[Change]) -> UndoRecord:
    """What an undo needs of changes, as far as they are any."""
    return UndoRecord(changes=tuple(each for each in changes if each.before != each.after))
