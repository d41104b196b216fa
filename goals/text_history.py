"""The history of a note, a document or a skill, for its page: who changed what when, the newest first (mission E1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final
from uuid import UUID

from django.template.defaultfilters import filesizeformat

from memory.models import Author, Document, Note, Skill
from memory.text import clip

LONGEST: Final = 160
COMPARED: Final = 500
"""Lines from the first that differs, and words of a line: comparing takes the square of them (threat T16)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that stay, go or come. kind: "", "del" or "ins"."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """version: which can be restored; None: this is how the text stands. pieces: of the first change; empty of the
    first version. more: how many other lines changed."""

    version: UUID | None
    by_agent: bool
    at: datetime
    pieces: Sequence[Piece]
    more: int


@dataclass(frozen=True, slots=True)
class State:
    """What a text said from a moment on. version: None: it says so still."""

    version: UUID | None
    author: str
    at: datetime
    lines: list[str]


def note_history(note: Note) -> list[Edit]:
    now = State(None, note.edited_by or note.author, note.updated_at, [note.title, *note.body.splitlines()])
    before = [
        State(each.pk, each.author, each.written_at, [each.title, *each.body.splitlines()])
        for each in note.versions.all()
    ]
    return _edits([now, *before])


def document_history(document: Document) -> list[Edit]:
    now = State(None, document.edited_by, document.updated_at, document.text.splitlines())
    before = [State(each.pk, each.author, each.written_at, each.text.splitlines()) for each in document.versions.all()]
    return _edits([now, *before])


def skill_history(skill: Skill) -> list[Edit]:
    sizes = {file.path: len(file.content) for file in skill.files.all()}
    now = State(None, Author.USER, skill.updated_at, _lines(skill.text, sizes))
    before = [
        State(each.pk, Author.USER, each.written_at, _lines(each.text, each.sizes)) for each in skill.versions.all()
    ]
    return _edits([now, *before])


def _lines(text: str, sizes: Mapping[str, int]) -> list[str]:
    """Of a skill: its text, and its files with their sizes."""
    return [*text.splitlines(), *(f"{path}, {filesizeformat(size)}" for path, size in sizes.items())]


def _edits(states: Sequence[State]) -> list[Edit]:
    edits = [_edit(state, before) for state, before in pairwise(states)]
    return [*edits, _edit(states[-1], None)]


def _edit(state: State, before: State | None) -> Edit:
    pieces, more = ([], 0) if before is None else _changed(before.lines, state.lines)
    return Edit(state.version, state.author == Author.AGENT, state.at, pieces, more)


def _changed(before: list[str], after: list[str]) -> tuple[list[Piece], int]:
    """The first change, word by word, and how many lines more are other ones."""
    pairs = enumerate(zip(before, after, strict=False))
    same = next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))
    before, after = before[same : same + COMPARED], after[same : same + COMPARED]
    blocks = [each for each in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if each[0] != "equal"]
    if not blocks:
        return [], 0
    _kind, i, i_end, j, j_end = blocks[0]
    gone, come = " ".join(before[i : min(i_end, i + 1)]), " ".join(after[j : min(j_end, j + 1)])
    lines = sum(max(b_end - b, a_end - a) for _kind, b, b_end, a, a_end in blocks)
    return _words(gone.split()[:COMPARED], come.split()[:COMPARED]), lines - 1


def _words(gone: list[str], come: list[str]) -> list[Piece]:
    pieces = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, gone, come, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(Piece("", clip(" ".join(gone[i:i_end]), LONGEST // 2)))
            continue
        pieces += [Piece("del", clip(" ".join(gone[i:i_end]), LONGEST))] if i < i_end else []
        pieces += [Piece("ins", clip(" ".join(come[j:j_end]), LONGEST))] if j < j_end else []
    return pieces[:8]
