"""Staff page of everything that agents did."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from memory.admin_base import ReadOnlyAdmin, pretty, record_use
from tools import registry
from tools.export import COLUMNS, Columns, Format, exported
from tools.mcp.models import McpServer
from tools.models import ActionQuerySet, ActionStatus, AgentAction, Approval
from tools.sought import Kind, Sought, State, Who

IN_FILE: Columns = {"user": lambda action: action.user.email, **COLUMNS}


class OneOf(admin.SimpleListFilter):
    """By one field of `Sought`."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[AgentAction]) -> QuerySet[AgentAction]:
        assert isinstance(queryset, ActionQuerySet)
        return self.sought(self.value()).among(queryset) if self.value() in self._known() else queryset

    def _known(self) -> set[str]:
        return {value for value, _ in self.lookup_choices}

    def sought(self, value: Any) -> Sought:
        raise NotImplementedError


class ByState(OneOf):
    title, parameter_name = "state", "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(state.value, state.value) for state in State]

    def sought(self, value: Any) -> Sought:
        return Sought(state=State(value), kind=Kind.EVERYTHING)


class ByWho(OneOf):
    title, parameter_name = "by", "by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(who.value, who.value) for who in Who]

    def sought(self, value: Any) -> Sought:
        return Sought(who=Who(value), kind=Kind.EVERYTHING)


class ByTool(OneOf):
    """Of the tools that there are: to look up those that there were would read the whole table."""

    title, parameter_name = "tool", "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(name, name) for name in sorted(registry.all_tools())]

    def sought(self, value: Any) -> Sought:
        return Sought(tool=value)


@admin.register(McpServer)
class McpServerAdmin(ReadOnlyAdmin[McpServer]):
    """Credentials are never shown, nor where exactly a server is or what it has answered: both may hold some."""

    list_display = ["name", "user", "transport", "enabled", "changed", "checked_at"]
    list_filter = ["transport", "enabled", "changed"]
    list_select_related = ["user"]
    fields = ["user", "name", "transport", "argv", "enabled", "changed", "tools", "checked_at", "created_at"]

    @admin.display(description="tools in use")
    def tools(self, server: McpServer) -> str:
        return ", ".join(each["offered"] for each in server.accepted)


@admin.register(AgentAction)
class AgentActionAdmin(ReadOnlyAdmin[AgentAction]):
    """What was asked and what came of it is private: it is on the page of one action, where looking is recorded."""

    list_display = ["created_at", "user", "by", "tool", "status", "undo_state", "effect", "risk", "reversal", "run"]
    list_filter = [ByState, ByWho, ByTool, "effect", "risk", "reversal", "created_at"]
    list_select_related = ["user", "run"]
    search_fields = ["id"]
    search_help_text = "An id, a person's address, or words in what was asked and what came of it; looking is recorded."
    ordering = ["-created_at"]
    fields = [
        *("approval_state", "repeats", "undoes", "undo_state", "resolution", "resolved_by", "resolved_at"),
        *("user", "run", "thread", "step", "position", "call_id", "tool", "effect", "risk", "reversal", "status"),
        *("given", "summary", "output", "error", "undo_record", "fence", "created_at", "started_at", "finished_at"),
    ]

    def get_queryset(self, request: HttpRequest) -> ActionQuerySet:
        return AgentAction.objects.with_standing()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AgentAction], search_term: str
    ) -> tuple[QuerySet[AgentAction], bool]:
        words = search_term.replace("\x00", "").strip()
        if not words:
            return queryset, False
        if action_id := _uuid(words):
            return queryset.filter(pk=action_id), False
        if "@" in words and " " not in words:
            return queryset.filter(user__email__icontains=words), False
        assert isinstance(queryset, ActionQuerySet)
        return Sought(text=words, kind=Kind.EVERYTHING).among(queryset), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        answer = super().changelist_view(request, extra_context)
        if request.GET.get("q", "").strip():
            record_use(request, AgentAction, f"Searched: {request.GET['q']}")
        return answer

    def get_urls(self) -> list[URLPattern]:
        files = [
            path(
                f"activity.{form}",
                self.admin_site.admin_view(self.file),
                {"form": form},
                name=f"tools_agentaction_{form}",
            )
            for form in Format
        ]
        return [*files, *super().get_urls()]

    def file(self, request: HttpRequest, form: Format) -> HttpResponseBase:
        """All that the list with the same filters shows, of everybody."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found: ChangeList = self.get_changelist_instance(request)
        record_use(request, AgentAction, f"Exported as {form}: {request.GET.urlencode() or 'everything'}")
        actions = found.get_queryset(request)
        assert isinstance(actions, ActionQuerySet)
        return exported(actions.order_by().select_related("user"), form, IN_FILE)

    @admin.display(description="by")
    def by(self, action: AgentAction) -> str:
        return Who.AGENT if action.run_id else Who.PERSON

    @admin.display(description="undo")
    def undo_state(self, action: AgentAction) -> str:
        if action.undone:
            return "undone"
        if vars(action)["reversible"]:
            return "can be undone"
        return "cannot be undone" if action.status == ActionStatus.DONE else "-"

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


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
