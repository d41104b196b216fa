"""What an undo would do, in words and with the texts that would go and come."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from django.utils.translation import gettext as _

from agents.live.cards import plain
from memory.text import clip
from tools.changes import Change, Finding, Verdict
from tools.models import AgentAction
from tools.undo import deed, is_possible, told_of
from tools.undo_many import why_lasting

EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Part:
    """`goes`, `comes`: of each field that changes its text as it is and as it would be."""

    icon: str
    words: str
    texts: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What would become of one action. why: why it stays."""

    action: AgentAction
    words: str
    possible: bool
    parts: list[Part]
    why: str

    @classmethod
    def of(cls, action: AgentAction, found: Sequence[Finding]) -> Self:
        possible = is_possible(found)
        parts = [_part(part.change, part) for part in found if part.change and part.verdict is Verdict.UNDO]
        why = "" if possible else told_of(found)
        return cls(action, deed(action), possible, parts, why)

    @classmethod
    def of_lasting(cls, action: AgentAction) -> Self:
        return cls(action, deed(action), False, [], why_lasting(action))


def _part(change: Change, found: Finding) -> Part:
    if found.target is None:
        return Part("trash-2", _("“%(name)s” is removed") % {"name": change.name}, [])
    if found.now is None:
        return Part("undo-2", _("“%(name)s” comes back") % {"name": change.name}, [])
    changed = [name for name in found.target if found.target[name] != found.now[name]]
    texts = [(name, _excerpt(found.now[name]), _excerpt(found.target[name])) for name in changed]
    return Part("undo-2", _("“%(name)s” goes back") % {"name": change.name}, texts)


def _excerpt(value: object) -> str:
    return clip(plain(value), EXCERPT)
