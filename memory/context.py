"""What changes from message to message: it goes into the history beside the user's words, never into the prefix."""

import hashlib
import zoneinfo
from dataclasses import dataclass
from datetime import datetime

from memory import pool
from memory.models import Thread
from memory.text import clip

NOTES_LISTED = 30
NOTES = "SELECT title, body FROM memory_note WHERE thread_id = %(thread)s ORDER BY created_at LIMIT %(most)s"


@dataclass(frozen=True, slots=True)
class Context:
    """`text` precedes the next user message in the history; `notes_digest` says which notes it knows of."""

    text: str
    notes_digest: str


def context_for(thread: Thread, now: datetime, time_zone: str, with_notes: bool) -> Context:
    """Time context, and the list of notes when it has changed since the model was last told."""
    local = now.astimezone(zoneinfo.ZoneInfo(time_zone))
    time = f"<time>{local:%A}, {local.day} {local:%B %Y, %H:%M} ({time_zone})</time>"
    if not with_notes:
        return Context(time, thread.notes_digest)
    notes = _list_of(thread)
    digest = hashlib.sha256(notes.encode()).hexdigest() if notes else ""
    if digest == thread.notes_digest:
        return Context(time, digest)
    return Context(f"{time}\n<notes>\n{notes or 'There are no notes.'}\n</notes>", digest)


def _list_of(thread: Thread) -> str:
    rows = pool.execute(NOTES, {"thread": thread.pk, "most": NOTES_LISTED})
    return "\n".join(f"- {title}: {clip(body, 160)}" for title, body in rows)
