"""What a call of a tool is known by: what it does, whatever its id."""

import hashlib
import json
from collections.abc import Mapping

from tools.changes import UndoRecord


def digest(tool: str, arguments: Mapping[str, object]) -> str:
    """Identify a call by what it does: the same for equal arguments, in whatever order or spelling of numbers."""
    text = json.dumps([tool, _canonical(arguments)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def shown(call: str, would: UndoRecord | None) -> str:
    """Identify what a person is shown of a call before they decide: what it does, and how the things stand that it
    would change.

    Args:
        call: its digest.
        would: what it would change (`Tool.expected`); None when that cannot be told.
    """
    if would is None:
        return call
    before = [[change.kind, change.id, change.before] for change in would.changes]
    return hashlib.sha256(json.dumps([call, before], sort_keys=True).encode()).hexdigest()


def _canonical(value: object) -> object:
    """PostgreSQL gives 1e2 back as 100."""
    if isinstance(value, Mapping):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
