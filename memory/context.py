"""What changes from message to message: it goes into the history beside the user's words, never into the prefix."""

import hashlib
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.sax.saxutils import escape

from memory.models import Thread
from memory.text import clip

NOTES_LISTED = 30

type Told = Mapping[str, str]
"""A digest of each section of the context as the model was last told it, by name; of one that was empty there is none.
"""


@dataclass(frozen=True, slots=True)
class Context:
    """`text` precedes the next user message in the history; `told` says what the model knows by then; None: it is told
    nothing of that."""

    text: str
    told: Told | None = None


def context_for(thread: Thread, now: datetime, time_zone: str, remembered: Mapping[str, str]) -> Context:
    """Time context, and what is remembered where that has changed since the model was last told.

    Args:
        remembered: by section, such as notes, its lines; empty when there are none (any more).
    """
    local = now.astimezone(zoneinfo.ZoneInfo(time_zone))
    parts = [f"<time>{local:%A}, {local.day} {local:%B %Y, %H:%M} ({time_zone})</time>"]
    told = {name: hashlib.sha256(lines.encode()).hexdigest() for name, lines in remembered.items() if lines}
    parts += [
        _section(name, lines or "None any more.")
        for name, lines in remembered.items()
        if told.get(name) != thread.told.get(name)
    ]
    return Context("\n".join(parts), told)


def noted(notes: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """The lines of (title, body, sources) of the newest NOTES_LISTED notes."""
    return "\n".join(escape(f"- {title}: {clip(body, 160)}{after(sources)}") for title, body, sources in notes)


def learned(learnings: Sequence[tuple[int, str, Sequence[str]]]) -> str:
    """The lines of (number, text, sources) of what has been learned."""
    return "\n".join(escape(f"{number}. {text}{after(sources)}") for number, text, sources in learnings)


def after(sources: Sequence[str]) -> str:
    """How a text is marked whose writer had read texts of strangers (`memory.marks`); empty for none."""
    return f" [after reading {', '.join(sources)}]" if sources else ""


def _section(name: str, lines: str) -> str:
    return f"<{name}>\n{lines}\n</{name}>"
