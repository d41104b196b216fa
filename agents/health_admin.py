"""Staff page of the health monitor: how each check came out last, what came before, and a button to look now."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.engine import health
from agents.models import HealthReport
from memory.admin_base import ReadOnlyAdmin, record

TITLES = {check.name: check.title for check in health.CHECKS}


OCCASIONS = {True: "by hand", False: "by the clock"}
SPANS = {"1": "the last hour", "24": "the last day", "168": "the last week"}


class CheckFilter(admin.SimpleListFilter):
    title, parameter_name = "check", "name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return TITLES.items()

    def queryset(self, request: HttpRequest, queryset: QuerySet[HealthReport]) -> QuerySet[HealthReport]:
        return queryset.filter(name=self.value()) if self.value() else queryset


class OccasionFilter(admin.SimpleListFilter):
    title, parameter_name = "occasion", "by_hand"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(str(int(by_hand)), words) for by_hand, words in OCCASIONS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[HealthReport]) -> QuerySet[HealthReport]:
        return queryset.filter(by_hand=self.value() == "1") if self.value() in ("0", "1") else queryset


class TimeFilter(admin.SimpleListFilter):
    title, parameter_name = "time", "hours"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return SPANS.items()

    def queryset(self, request: HttpRequest, queryset: QuerySet[HealthReport]) -> QuerySet[HealthReport]:
        if (hours := self.value()) not in SPANS:
            return queryset
        return queryset.filter(at__gte=timezone.now() - timedelta(hours=int(hours)))


class HealthReportAdmin(ReadOnlyAdmin[HealthReport]):
    change_list_template = "admin/agents/healthreport/change_list.html"
    list_display = ["at", "check_name", "found", "fixed", "well", "occasion"]
    list_filter = [CheckFilter, OccasionFilter, ("error", admin.EmptyFieldListFilter), TimeFilter]
    search_fields = ["name"]

    @admin.display(description="check", ordering="name")
    def check_name(self, report: HealthReport) -> str:
        return TITLES.get(report.name, report.name)

    @admin.display(ordering="by_hand")
    def occasion(self, report: HealthReport) -> str:
        return OCCASIONS[report.by_hand]

    @admin.display(boolean=True, description="in order")
    def well(self, report: HealthReport) -> bool:
        return report.is_well

    def get_urls(self) -> list[URLPattern]:
        run = self.admin_site.admin_view(require_POST(self.run_now))
        return [path("run/", run, name="agents_healthreport_run"), *super().get_urls()]

    def has_run_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agents.change_healthreport")

    def run_now(self, request: HttpRequest) -> HttpResponse:
        """Make every check; put right what is found when the button for that was pressed."""
        if not self.has_run_permission(request):
            raise PermissionDenied
        fix = "fix" in request.POST
        reports = health.examine(fix=fix, by_hand=True)
        record(request, reports, "Repaired" if fix else "Looked")
        found, fixed = sum(report.found for report in reports), sum(report.fixed for report in reports)
        level = messages.SUCCESS if all(report.is_well for report in reports) else messages.WARNING
        self.message_user(request, f"{found} found, {fixed} put right.", level)
        return HttpResponseRedirect(reverse("admin:agents_healthreport_changelist"))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        more = {"latest": latest(), "may_run": self.has_run_permission(request)}
        return super().changelist_view(request, {**(extra_context or {}), **more})


def latest() -> list[tuple[str, HealthReport]]:
    """The last report of each check with the check's title, in the order of the checks."""
    reports = {report.name: report for report in HealthReport.objects.order_by("name", "-at", "-id").distinct("name")}
    return [(title, reports[name]) for name, title in TITLES.items() if name in reports]
