"""Actions as a file to keep, CSV or JSON, written while it is sent: it may be long (mission D7)."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from channels.db import database_sync_to_async
from django.http import StreamingHttpResponse
from django.utils import timezone

from memory.sheets import line
from tools.models import NEWEST_FIRST, ActionQuerySet, AgentAction
from tools.undo import told

type Columns = Mapping[str, Callable[[AgentAction], object]]

AT_ONCE = 200
COLUMNS: Columns = {
    "id": lambda action: str(action.pk),
    "created_at": lambda action: _moment(action.created_at),
    "by": lambda action: "agent" if action.run_id else "person",
    "what": told,
    "tool": lambda action: action.tool,
    "status": lambda action: action.status,
    "undone": lambda action: action.undone,
    "undoes": lambda action: _id(action.undoes_id),
    "effect": lambda action: action.effect,
    "risk": lambda action: action.risk,
    "reversal": lambda action: action.reversal,
    "arguments": lambda action: action.arguments,
    "output": lambda action: action.output,
    "error": lambda action: action.error,
    "changes": lambda action: (action.undo or {}).get("changes", []),
    "resolution": lambda action: action.resolution,
    "started_at": lambda action: _moment(action.started_at),
    "finished_at": lambda action: _moment(action.finished_at),
    "run": lambda action: _id(action.run_id),
}


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"


def exported(actions: ActionQuerySet, form: Format, columns: Columns) -> StreamingHttpResponse:
    """A download of all these actions, the newest first.

    Args:
        actions: whatever whoever asks may see.
        columns: what each says, by name.
    """
    pieces = _csv(actions, columns) if form is Format.CSV else _json(actions, columns)
    kind = "text/csv" if form is Format.CSV else "application/json"
    answer = StreamingHttpResponse(_sent(pieces), content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="activity-{timezone.localdate()}.{form}"'
    return answer


async def _sent(pieces: Iterator[str]) -> AsyncIterator[bytes]:
    """Each piece is made in a thread that may use the database, and only when the one before has been taken."""
    following = database_sync_to_async(next)
    while (piece := await following(pieces, None)) is not None:
        yield piece.encode()


def _csv(actions: ActionQuerySet, columns: Columns) -> Iterator[str]:
    yield line(columns)
    for some in _in_pieces(actions):
        yield "".join(line(_plain(value(action)) for value in columns.values()) for action in some)


def _json(actions: ActionQuerySet, columns: Columns) -> Iterator[str]:
    before = "[\n"
    for some in _in_pieces(actions):
        rows = [{name: value(action) for name, value in columns.items()} for action in some]
        yield before + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _in_pieces(actions: ActionQuerySet) -> Iterator[list[AgentAction]]:
    """Each read anew after the last row of the one before, so that no transaction stays open while somebody reads."""
    rest = actions
    while some := list(NEWEST_FIRST.sort(rest)[:AT_ONCE]):
        yield some
        rest = NEWEST_FIRST.beyond(actions, NEWEST_FIRST.key(some[-1]))


def _plain(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).isoformat()


def _id(value: object) -> str:
    return "" if value is None else str(value)
