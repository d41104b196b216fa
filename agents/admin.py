"""Staff pages of who works: runs, assistants, tasks, models, devices, users."""

from datetime import timedelta

from allauth.account.decorators import secure_admin_login
from django.contrib import admin, messages
from django.contrib.admin.forms import AdminPasswordChangeForm
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm as UserPasswordForm
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents import prompt_admin, tokens
from agents.budget_admin import BudgetAdmin
from agents.budgets.models import Budget
from agents.costs_admin import ServerPriceAdmin
from agents.health_admin import HealthReportAdmin
from agents.model_call_admin import ModelCallAdmin
from agents.models import AgentTask, DeviceToken, HealthReport, ModelCall, ModelConnection, ModelPrice, UserAgent
from agents.stopping import stop_run
from memory.admin_base import ReadOnlyAdmin, record
from memory.models import AgentRun

admin.site.site_header = admin.site.site_title = "Waymark"
# Staff sign in where everybody does: Django's own form for staff has no limit of tries.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.register(ModelCall, ModelCallAdmin)
admin.site.register(ModelPrice, ServerPriceAdmin)
admin.site.register(HealthReport, HealthReportAdmin)
admin.site.register(Budget, BudgetAdmin)
admin.site.unregister(User)


class EndsTokens:
    """Mixin for password forms: a new password ends what was signed in before; browsers by Django, devices here."""

    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)  # type: ignore[misc]
        tokens.revoke_all(user)
        return user


class OwnPassword(EndsTokens, AdminPasswordChangeForm):
    pass


class SetPassword(EndsTokens, UserPasswordForm):  # type: ignore[type-arg]
    pass


admin.site.password_change_form = OwnPassword


@admin.register(User)
class PersonAdmin(UserAdmin[User]):
    change_password_form = SetPassword


@admin.register(AgentRun)
class AgentRunAdmin(ReadOnlyAdmin[AgentRun]):
    list_display = [
        "id",
        "user",
        "kind",
        "status",
        "reason",
        "trigger",
        "step",
        "tokens",
        "price",
        "duration",
        "created_at",
    ]
    list_filter = ["status", "trigger", "reason"]
    list_select_related = ["thread__user"]
    search_fields = ["id", "thread__user__email"]
    ordering = ["-id"]
    actions = ["stop"]
    fields = [
        *("user", "thread", "status", "trigger", "reason", "error", "step"),
        *("tokens", "cached_tokens", "written_tokens", "price"),
        *("fence", "lease_until", "due_at", "recoveries", "retries", "created_at", "started_at", "finished_at"),
        *("duration", "elsewhere"),
    ]

    @admin.display(ordering="thread__user__email")
    def user(self, run: AgentRun) -> User:
        return run.thread.user

    @admin.display(ordering="thread__kind")
    def kind(self, run: AgentRun) -> str:
        return run.thread.kind

    @admin.display(description="tokens in / out")
    def tokens(self, run: AgentRun) -> str:
        return f"{run.input_tokens:,} / {run.output_tokens:,}"

    @admin.display(description="cost", ordering="cost")
    def price(self, run: AgentRun) -> str:
        return f"${run.cost:.4f}" + ("" if run.cost_known else " + unknown")

    @admin.display(empty_value="-")
    def duration(self, run: AgentRun) -> timedelta | None:
        return run.finished_at - run.started_at if run.finished_at and run.started_at else None

    @admin.display(description="see also")
    def elsewhere(self, run: AgentRun) -> SafeString:
        return format_html(
            '<a href="{}?run__id__exact={}">actions</a> · <a href="{}?run__id__exact={}">model calls</a> · '
            "prompt of the last: {}",
            reverse("admin:tools_agentaction_changelist"),
            run.pk,
            reverse("admin:agents_modelcall_changelist"),
            run.pk,
            prompt_admin.link(run.calls.last(), "show"),
        )

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memory.change_agentrun")

    @admin.action(description="Stop selected runs", permissions=["stop"])
    def stop(self, request: HttpRequest, runs: QuerySet[AgentRun]) -> None:
        live = [run for run in runs.select_related("thread") if run.is_live]
        for run in live:
            stop_run(run)
        record(request, live, "Stopped")
        self.message_user(request, f"{len(live)} runs were told to stop.", messages.SUCCESS)


@admin.register(UserAgent)
class UserAgentAdmin(ReadOnlyAdmin[UserAgent]):
    list_display = ["user", "thread", "time_zone", "theme", "welcomed", "created_at"]
    list_select_related = ["user", "thread"]
    search_fields = ["user__email"]
    ordering = ["-id"]


@admin.register(AgentTask)
class AgentTaskAdmin(ReadOnlyAdmin[AgentTask]):
    list_display = ["title", "user", "status", "paused_at", "resume_at", "created_at"]
    list_filter = ["status"]
    list_select_related = ["user"]
    search_fields = ["title", "user__email"]
    ordering = ["-id"]


@admin.register(ModelConnection)
class ModelConnectionAdmin(ReadOnlyAdmin[ModelConnection]):
    list_display = ["user", "kind", "name", "model", "base_url", "key_hint", "is_default", "works", "tested_at"]
    list_filter = ["kind", "is_default", "works"]
    list_select_related = ["user"]
    search_fields = ["user__email", "model"]
    exclude = ["sealed_key"]


@admin.register(DeviceToken)
class DeviceTokenAdmin(ReadOnlyAdmin[DeviceToken]):
    list_display = ["name", "user", "created_at", "last_used_at"]
    list_display_links = ["created_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__email"]
    exclude = ["digest"]
    actions = ["revoke"]

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agents.delete_devicetoken")

    @admin.action(description="Revoke selected devices", permissions=["revoke"])
    def revoke(self, request: HttpRequest, devices: QuerySet[DeviceToken]) -> None:
        record(request, devices, "Revoked")
        count, _ = devices.delete()
        self.message_user(request, f"{count} devices were signed out.", messages.SUCCESS)
