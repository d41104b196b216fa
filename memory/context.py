"""What changes from message to message: it goes into the history beside the user's words, never into the prefix."""

import hashlib
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.sax.saxutils import escape

from memory.models import Thread
from memory.text import clip

NOTES_LISTED = 30

type Notes = Sequence[tuple[str, str]]
type Plan = Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Context:
    """`text` precedes the next user message in the history; `notes_digest` says which notes it knows of."""

    text: str
    notes_digest: str | None


def context_for(thread: Thread, now: datetime, time_zone: str, notes: Notes | None, plan: Plan = ()) -> Context:
    """Time context, the plan as long as something of it is open, and the list of notes when it has changed since the
    model was last told.

    Args:
        notes: (title, body) of the newest NOTES_LISTED notes; None when the agent is not told of notes.
        plan: (number, title, status) of the tasks and subtasks of the plan that holds.
    """
    local = now.astimezone(zoneinfo.ZoneInfo(time_zone))
    time = f"<time>{local:%A}, {local.day} {local:%B %Y, %H:%M} ({time_zone})</time>"
    if any(status == "open" for _number, _title, status in plan):
        steps = "\n".join(escape(f"{number} {title} [{status}]") for number, title, status in plan)
        time = f"{time}\n<plan>\n{steps}\n</plan>"
    if notes is None:
        return Context(time, thread.notes_digest)
    listed = "\n".join(escape(f"- {title}: {clip(body, 160)}") for title, body in notes)
    digest = hashlib.sha256(listed.encode()).hexdigest() if listed else ""
    if digest == thread.notes_digest:
        return Context(time, digest)
    return Context(f"{time}\n<notes>\n{listed or 'There are no notes.'}\n</notes>", digest)
