"""Staff pages of what is remembered: threads with the model's view of them, notes, learnings, documents and skills."""

import json
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from memory import llm_transcript, quarantine
from memory.admin_base import ReadOnlyAdmin, record
from memory.attachment_admin import AttachmentAdmin as AttachmentAdmin
from memory.history_admin import AgentHistoryAdmin as AgentHistoryAdmin
from memory.models import AgentRun, Document, HistoryEntry, Learning, Note, Skill, Thread

SILENT_AFTER_SECONDS = 60


@admin.register(Thread)
class ThreadAdmin(ReadOnlyAdmin[Thread]):
    list_display = ["id", "user", "kind", "working", "pending", "created_at"]
    list_filter = ["kind", ("live_run", admin.EmptyFieldListFilter)]
    list_select_related = ["user"]
    search_fields = ["id", "user__email"]
    ordering = ["-id"]
    fields = [
        *("user", "kind", "created_at", "active_at", "pending", "generation", "from_seq", "news"),
        *("runtime", "elsewhere", "transcript"),
    ]

    @admin.display(boolean=True, description="orchestrator running")
    def working(self, thread: Thread) -> bool:
        return thread.live_run is not None

    @admin.display(description="runtime state")
    def runtime(self, thread: Thread) -> SafeString:
        return render_to_string("admin/runtime_state.html", {"run": _live_run(thread), "now": timezone.now()})

    @admin.display(description="see also")
    def elsewhere(self, thread: Thread) -> SafeString:
        return format_html(
            '<a href="{}?thread__id__exact={}">runs</a> · <a href="{}?thread__id__exact={}">archived sessions</a> · '
            '<a href="{}">history as JSON</a>',
            reverse("admin:memory_agentrun_changelist"),
            thread.pk,
            reverse("admin:memory_agenthistory_changelist"),
            thread.pk,
            reverse("admin:memory_thread_history_json", args=[thread.pk]),
        )

    @admin.display(description="LLM history")
    def transcript(self, thread: Thread) -> SafeString:
        return llm_transcript.render(thread)

    def get_urls(self) -> list[URLPattern]:
        raw = self.admin_site.admin_view(self.history_json)
        release = self.admin_site.admin_view(require_POST(self.release))
        return [
            path("<uuid:thread_id>/history.json", raw, name="memory_thread_history_json"),
            path("<uuid:thread_id>/release/", release, name="memory_thread_release"),
            *super().get_urls(),
        ]

    def history_json(self, request: HttpRequest, thread_id: Any) -> HttpResponse:
        """The whole history as it is stored, as a download."""
        thread = self.get_object(request, str(thread_id))
        if thread is None or not self.has_view_permission(request, thread):
            raise Http404
        record(request, [thread], "Downloaded the LLM history")
        entries = (
            HistoryEntry.objects.filter(thread=thread).order_by("seq").values("seq", "role", "blocks", "created_at")
        )
        body = json.dumps(list(entries), default=str, indent=1, ensure_ascii=False)
        headers = {"Content-Disposition": f'attachment; filename="history-{thread.pk}.json"'}
        return HttpResponse(body, content_type="application/json", headers=headers)

    def release(self, request: HttpRequest, thread_id: Any) -> HttpResponse:
        """Let the model see the whole history again."""
        thread = self.get_object(request, str(thread_id))
        if thread is None or not request.user.has_perm("memory.change_thread"):
            raise Http404
        count = quarantine.release(thread)
        record(request, [thread], f"Released {count} history entries from quarantine")
        self.message_user(request, f"{count} entries were released.", messages.SUCCESS)
        return redirect("admin:memory_thread_change", thread.pk)


def _live_run(thread: Thread) -> AgentRun | None:
    """The live run with `heartbeat_age` in seconds and whether that is too long (`silent`)."""
    run = AgentRun.objects.live().filter(thread=thread).first()
    if run is not None:
        age = heartbeat_age(run)
        run.heartbeat_age, run.silent = age, age is not None and age > SILENT_AFTER_SECONDS  # type: ignore[attr-defined]
    return run


def heartbeat_age(run: AgentRun) -> float | None:
    """Seconds since the worker last renewed its lease; None when no worker has the run."""
    if run.lease_until is None:
        return None
    left = (run.lease_until - timezone.now()).total_seconds()
    since: float = settings.WAYMARK_LEASE_SECONDS - left
    return max(0.0, since)


@admin.register(Note)
class NoteAdmin(ReadOnlyAdmin[Note]):
    list_display = ["title", "user", "author", "thread", "updated_at"]
    list_filter = ["author"]
    list_select_related = ["user", "thread"]
    search_fields = ["title", "user__email"]
    fields = ["title", "body", "author", "user", "thread", "created_at", "updated_at"]


@admin.register(Learning)
class LearningAdmin(ReadOnlyAdmin[Learning]):
    """Its list does not show what was learned of a person."""

    list_display = ["id", "user", "number", "author", "thread", "ended_at", "created_at"]
    list_filter = ["author", ("ended_at", admin.EmptyFieldListFilter)]
    list_select_related = ["user", "thread"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = [
        *("number", "text", "author", "user", "thread", "sources", "message", "action", "replaced_by"),
        *("ended_at", "created_at"),
    ]


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin[Document]):
    list_display = ["name", "user", "edited_by", "thread", "updated_at"]
    list_filter = ["edited_by"]
    list_select_related = ["user", "thread"]
    search_fields = ["name", "user__email"]
    fields = ["name", "text", "author", "edited_by", "sources", "user", "thread", "created_at", "updated_at"]


@admin.register(Skill)
class SkillAdmin(ReadOnlyAdmin[Skill]):
    list_display = ["name", "user", "is_on", "updated_at"]
    list_filter = ["is_on"]
    list_select_related = ["user"]
    search_fields = ["name", "user__email"]
    fields = ["name", "description", "text", "is_on", "user", "created_at", "updated_at"]
