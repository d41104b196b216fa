"""Staff page of everything that agents did."""

from django.contrib import admin
from django.utils.safestring import SafeString

from memory.admin_base import ReadOnlyAdmin, pretty
from tools.models import AgentAction, Approval


@admin.register(AgentAction)
class AgentActionAdmin(ReadOnlyAdmin[AgentAction]):
    list_display = ["created_at", "user", "tool", "status", "effect", "risk", "reversal", "summary"]
    list_filter = ["status", "tool", "effect", "risk"]
    list_select_related = ["user"]
    search_fields = ["id", "user__email", "tool"]
    ordering = ["-created_at"]
    fields = [
        *("approval_state", "repeats", "undoes", "undone", "resolution", "resolved_by", "resolved_at"),
        *("user", "run", "thread", "step", "position", "call_id", "tool", "effect", "risk", "reversal", "status"),
        *("given", "summary", "output", "error", "undo_record", "fence", "created_at", "started_at", "finished_at"),
    ]

    @admin.display(description="approval")
    def approval_state(self, action: AgentAction) -> str:
        approval = Approval.objects.filter(pk=action.pk).first()
        return f"{approval.state} ({approval.get_cause_display()})" if approval else "not needed"

    @admin.display(description="arguments")
    def given(self, action: AgentAction) -> SafeString:
        return pretty(action.arguments)

    @admin.display(description="undo record")
    def undo_record(self, action: AgentAction) -> SafeString:
        return pretty(action.undo)
