"""The history of a note, for its page: who changed what when, the newest first (mission E1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final
from uuid import UUID

from memory.models import Note, NoteVersion
from memory.text import clip

LONGEST: Final = 160


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that stay, go or come. kind: "", "del" or "ins"."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """version: which can be restored; None: this is how the note stands. pieces: of the first change; empty of the
    first version. more: how many other lines changed."""

    version: UUID | None
    by_agent: bool
    at: datetime
    pieces: Sequence[Piece]
    more: int


def history(note: Note) -> list[Edit]:
    states = [_now(note), *note.versions.all()]
    edits = [_edit(state, before) for state, before in pairwise(states)]
    return [*edits, _edit(states[-1], None)]


def _now(note: Note) -> NoteVersion:
    """As a version that is kept nowhere."""
    author = note.edited_by or note.author
    return NoteVersion(note=note, title=note.title, body=note.body, author=author, written_at=note.updated_at)


def _edit(state: NoteVersion, before: NoteVersion | None) -> Edit:
    version = None if state._state.adding else state.pk
    pieces, more = ([], 0) if before is None else _changed(_lines(before), _lines(state))
    return Edit(version, state.author == "agent", state.written_at, pieces, more)


def _lines(version: NoteVersion) -> list[str]:
    return [version.title, *version.body.splitlines()]


def _changed(before: list[str], after: list[str]) -> tuple[list[Piece], int]:
    """The first change, word by word, and how many lines more are other ones."""
    blocks = [each for each in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if each[0] != "equal"]
    if not blocks:
        return [], 0
    _kind, i, i_end, j, j_end = blocks[0]
    gone, come = " ".join(before[i : min(i_end, i + 1)]), " ".join(after[j : min(j_end, j + 1)])
    lines = sum(max(b_end - b, a_end - a) for _kind, b, b_end, a, a_end in blocks)
    return _words(gone.split(), come.split()), lines - 1


def _words(gone: list[str], come: list[str]) -> list[Piece]:
    pieces = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, gone, come, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(Piece("", clip(" ".join(gone[i:i_end]), LONGEST // 2)))
            continue
        pieces += [Piece("del", clip(" ".join(gone[i:i_end]), LONGEST))] if i < i_end else []
        pieces += [Piece("ins", clip(" ".join(come[j:j_end]), LONGEST))] if j < j_end else []
    return pieces[:8]
