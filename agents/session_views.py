"""Pages of earlier sessions: the list with its search, one session to read, and archiving by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.agentable import agentable_of
from agents.live import markdown
from agents.live.steps import told
from agents.refusals import Refused
from agents.services import archive_now
from agents.signed_in import SignedInRequest, signed_in
from memory.archived import ENTRIES, Entry
from memory.llm_transcript import indented, reindented
from memory.messages import Block, Thinking, ToolResult, ToolUse
from memory.models import AgentHistory, ArchiveReason, HistoryEntry, Thread
from memory.recall import find_sessions

SHOWN = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One entry as people read it: its words and what was attached, then its thoughts and calls with what came back,
    folded away."""

    role: str
    at: datetime
    words: str
    html: SafeString
    files: list[dict[str, Any]]
    folded: list[tuple[str, str]]


@require_GET
@signed_in
def thread_sessions(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    thread = _thread(request, thread_id)
    query = request.GET.get("q", "")
    found = find_sessions(thread.pk, query, most=SHOWN)
    begun = HistoryEntry.objects.filter(thread=thread, seq__gte=thread.from_seq).exists()
    sessions = [(session, why(session.reason)) for session in found]
    page = {"thread": thread, "agent": agentable_of(thread), "sessions": sessions, "query": query, "begun": begun}
    return render(request, "agents/sessions.html", page)


@require_GET
@signed_in
def session(request: SignedInRequest, session_id: UUID) -> HttpResponse:
    sessions = AgentHistory.objects.for_user(request.user).done().select_related("thread__user")
    found = get_object_or_404(sessions, pk=session_id)
    page = {
        "session": found,
        "thread": found.thread,
        "agent": agentable_of(found.thread),
        "lines": _lines(ENTRIES.validate_python(found.entries)),
        "why": why(found.reason),
    }
    return render(request, "agents/session.html", page)


@require_POST
@signed_in
def sessions_archive(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    thread = _thread(request, thread_id)
    try:
        archive_now(thread)
    except Refused as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, _("The session is being summed up; the next message begins a new one."))
    return redirect("thread_sessions", thread.pk)


def _thread(request: SignedInRequest, thread_id: UUID) -> Thread:
    return get_object_or_404(Thread.objects.for_user(request.user).select_related("user"), pk=thread_id)


def why(reason: str) -> str:
    words = {
        ArchiveReason.IDLE: _("ended because nothing was said for a while"),
        ArchiveReason.LONG: _("put away because the conversation had grown long"),
        ArchiveReason.BY_HAND: _("ended by you"),
    }
    return words.get(ArchiveReason(reason), "")


def _lines(entries: Sequence[Entry]) -> list[Line]:
    """Results stand with their calls; one whose call is missing stands for itself."""
    results = {block.id: block for entry in entries for block in entry.blocks if isinstance(block, ToolResult)}
    lines = []
    for entry in entries:
        folded = [part for block in entry.blocks if (part := _folded(block, results))]
        words = "" if entry.role == "tool" else entry.message.words
        html = SafeString(markdown.render(words)) if entry.role == "assistant" else SafeString()
        if words or folded:
            files = [block.model_dump(exclude={"text"}) for block in entry.message.attached]
            lines.append(Line(entry.role, entry.at, words, html, files, folded))
    return lines


def _folded(block: Block, results: dict[str, ToolResult]) -> tuple[str, str] | None:
    match block:
        case Thinking(text=text) if text.strip():
            return _("Thought"), text
        case ToolUse():
            result = results.pop(block.id, None)
            text = "\n\n".join([indented(block.arguments), reindented(result.content) if result else ""]).strip()
            return told(block, is_error=bool(result and result.is_error)), text
        case ToolResult() if results.pop(block.id, None):
            return _("What a tool gave"), reindented(block.content)
    return None
