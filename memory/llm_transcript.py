"""The LLM history of a thread as staff read it: role by role, arguments and results as indented JSON."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from memory.archived import ENTRIES
from memory.models import AgentHistory, HistoryEntry, Thread

SHOWN = 300


@dataclass(frozen=True, slots=True)
class Part:
    """One block. `title` names a call or a result, `details` is whether it is folded away."""

    kind: str
    title: str
    text: str
    problem: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    seq: int
    role: str
    run_id: UUID | None
    at: datetime
    parts: tuple[Part, ...]
    quarantine: str = ""


def render(thread: Thread) -> SafeString:
    """Show the last entries of the history; how many came before is said."""
    history = HistoryEntry.objects.filter(thread=thread)
    entries = list(history.order_by("-seq")[:SHOWN])
    rows = [_row(entry) for entry in reversed(entries)]
    hidden = history.count() - len(entries)
    held = history.exclude(quarantine="").count()
    context = {"rows": rows, "hidden": hidden, "thread": thread, "held": held}
    return render_to_string("admin/llm_transcript.html", context)


def _row(entry: HistoryEntry) -> Row:
    parts = tuple(map(part, entry.blocks))
    return Row(entry.seq, entry.role, entry.run_id, entry.created_at, parts, entry.quarantine)


def render_archived(session: AgentHistory) -> SafeString:
    entries = ENTRIES.validate_python(session.entries)
    rows = [Row(e.seq, e.role, e.run, e.at, tuple(part(b.model_dump(mode="json")) for b in e.blocks)) for e in entries]
    return render_to_string("admin/llm_transcript.html", {"rows": rows[-SHOWN:], "hidden": max(0, len(rows) - SHOWN)})


def part(block: dict[str, Any]) -> Part:
    """A block as stored, which may be older than today's vocabulary: what is unknown is shown as it is."""
    match block:
        case {"type": "text", "text": str(text)}:
            return Part("text", "", text)
        case {"type": "image" | "file" as kind, "name": str(name)}:
            return Part(kind, f"{kind} {name}", str(block.get("text") or indented(block)))
        case {"type": "thinking", "text": str(text)}:
            return Part("thinking", "thinking", text)
        case {"type": "tool_use", "name": str(name), "arguments": arguments}:
            problem = block.get("problem")
            return Part("tool_use", f"{name} ({block.get('id')})", problem or indented(arguments), bool(problem))
        case {"type": "tool_result", "content": str(content)}:
            title = f"result of {block.get('id')}"
            return Part("tool_result", title, reindented(content), bool(block.get("is_error")))
    return Part("unknown", "unknown block", indented(block))


def indented(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def reindented(text: str) -> str:
    """A result is text for the model; when that text is a JSON object or list, show it as one."""
    try:
        value = json.loads(text) if text[:1] in "{[" else None
    except (ValueError, RecursionError):
        return text
    return text if value is None else indented(value)
