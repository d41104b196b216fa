"""What a call changed, as it was before and after: all that an undo needs. Pure values, and the rule by which they are
compared with how things stand now (mission D8, cases UND-01, UND-02)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, JsonValue

type Image = dict[str, JsonValue]
"""One thing as it was at one moment: its fields as JSON."""


class Change(BaseModel):
    """One thing that a call created (no `before`), removed (no `after`), or changed (only the fields that differ).

    kind: of its restorer. id: by which the restorer finds it. name: how people know it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    id: str
    name: str
    before: Image | None
    after: Image | None


class UndoRecord(BaseModel):
    """What a call did, in order. `lasting`: what nobody can take back, a sentence each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    changes: tuple[Change, ...] = ()
    lasting: tuple[str, ...] = ()


class Verdict(StrEnum):
    """What an undo does with a change. BACK_ALREADY: it is as before, nothing is to be done. CONFLICT: it was changed
    since. LASTING: nobody can take it back. FAILED: it was tried and did not succeed; it may be tried again."""

    UNDO = "undo"
    BACK_ALREADY = "back_already"
    CONFLICT = "conflict"
    LASTING = "lasting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """
    why: why it cannot be taken back; a sentence. fields: those that somebody else has changed since.
    now: how the thing stands; None when it is not there. target: how it is to stand.
    """

    verdict: Verdict
    change: Change | None = None
    why: str = ""
    fields: Sequence[str] = field(default=())
    now: Image | None = None
    target: Image | None = None


def compared(change: Change, now: Image | None) -> Finding:
    """Compare a change with how its thing stands now. Nothing that was done since is ever lost.

    Args:
        now: all fields; None when the thing is not there.
    """
    if change.before is None:
        return _creation(change, now)
    if change.after is None:
        return _removal(change, now)
    return _update(change, now)


def _creation(change: Change, now: Image | None) -> Finding:
    if now is None:
        return Finding(Verdict.BACK_ALREADY, change)
    if moved := _differing(change.after or {}, now):
        return Finding(Verdict.CONFLICT, change, "It was changed since.", moved, now)
    return Finding(Verdict.UNDO, change, now=now, target=None)


def _removal(change: Change, now: Image | None) -> Finding:
    if now is None:
        return Finding(Verdict.UNDO, change, target=change.before)
    if not _differing(change.before or {}, now):
        return Finding(Verdict.BACK_ALREADY, change, now=now)
    return Finding(Verdict.CONFLICT, change, "There is one again, and it is another.", (), now)


def _update(change: Change, now: Image | None) -> Finding:
    before, after = change.before or {}, change.after or {}
    if now is None:
        return Finding(Verdict.CONFLICT, change, "It is not there any more.")
    away = _differing(before, now)
    if not away:
        return Finding(Verdict.BACK_ALREADY, change, now=now)
    if moved := [name for name in away if now.get(name) != after.get(name)]:
        return Finding(Verdict.CONFLICT, change, "It was changed since.", moved, now)
    return Finding(Verdict.UNDO, change, now=now, target=now | {name: before[name] for name in away})


def _differing(image: Image, now: Image) -> list[str]:
    return [name for name, value in image.items() if now.get(name) != value]
