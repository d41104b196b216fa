"""Staff page of archived sessions: searchable, readable, never changed."""

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory import llm_transcript
from memory.admin_base import ReadOnlyAdmin
from memory.models import AgentHistory


@admin.register(AgentHistory)
class AgentHistoryAdmin(ReadOnlyAdmin[AgentHistory]):
    list_display = [
        *("id", "user", "generation", "title", "status", "reason", "message_count", "ended_at", "model", "tries"),
    ]
    list_filter = ["status", "reason", "ended_at"]
    list_select_related = ["thread__user"]
    search_fields = ["thread__user__email", "title", "summary", "text"]
    ordering = ["-id"]
    fields = [
        *("user", "thread", "generation", "status", "reason", "title", "summary", "model", "error", "tries", "due_at"),
        *("message_count", "input_tokens", "output_tokens", "first_seq", "last_seq", "started_at", "ended_at"),
        *("created_at", "transcript"),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentHistory]:
        """The list does not read what it does not show."""
        return super().get_queryset(request).defer("entries", "text")

    @admin.display(ordering="thread__user__email")
    def user(self, session: AgentHistory) -> User:
        return session.thread.user

    @admin.display(description="LLM history")
    def transcript(self, session: AgentHistory) -> SafeString:
        return llm_transcript.render_archived(session)
