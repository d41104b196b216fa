"""A tool call unfolded: what it was asked, what it gave, whether it can be taken back."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from django.utils.translation import gettext as _

from agents.live.steps import sentence
from tools.base import Reversal
from tools.models import AgentAction

SHOWN = 4_000


@dataclass(frozen=True, slots=True)
class Details:
    """Plain text throughout. `arguments` are (name, value) pairs, long or nested values as JSON."""

    sentence: str
    arguments: list[tuple[str, str]]
    output: str
    error: str
    lasted: timedelta | None
    undo: str


def details(action: AgentAction) -> Details:
    arguments: dict[str, Any] = action.arguments if isinstance(action.arguments, dict) else {}
    return Details(
        sentence=f"{sentence(action)[0]} {action.summary}".strip(),
        arguments=[(name, _plain(value)) for name, value in arguments.items()],
        output=_cut(action.output),
        error=_cut(action.error),
        lasted=action.finished_at - action.started_at if action.finished_at and action.started_at else None,
        undo=_undo(Reversal(action.reversal)),
    )


def _plain(value: object) -> str:
    return _cut(value if isinstance(value, str) else orjson.dumps(value).decode())


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _undo(reversal: Reversal) -> str:
    return {
        Reversal.NOTHING: _("Nothing to undo, this only read"),
        Reversal.UNDOABLE: _("Can be undone"),
        Reversal.COMPENSABLE: _("Cannot be undone, but made up for"),
        Reversal.IRREVERSIBLE: _("Cannot be undone"),
    }[reversal]
