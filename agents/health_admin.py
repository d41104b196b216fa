"""Staff page of the health monitor: how each check came out last, what came before, and a button to look now."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from agents.engine import health
from agents.models import HealthReport
from memory.admin_base import ReadOnlyAdmin, record

TITLES = {check.name: check.title for check in health.CHECKS}


class HealthReportAdmin(ReadOnlyAdmin[HealthReport]):
    change_list_template = "admin/agents/healthreport/change_list.html"
    list_display = ["at", "name", "found", "fixed", "well", "by_hand"]
    list_filter = ["name", "by_hand", ("error", admin.EmptyFieldListFilter), "at"]
    search_fields = ["name"]

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
