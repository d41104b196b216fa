"""Staff page of costs: everybody's, by user, model, agent, day or month, and as CSV; prices for the whole server."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from agents.cost_rows import Row, as_csv, rows
from agents.costs import By, Period, total
from agents.models import ModelCall, ModelPrice
from agents.periods import days, period
from agents.providers.catalog import known_kinds
from agents.refusals import Refused
from memory.admin_base import record

BYS = {By.USER: "user", By.MODEL: "model", By.AGENT: "agent", By.DAY: "day", By.MONTH: "month"}


def costs(request: HttpRequest) -> HttpResponse:
    """`?by=&since=&until=` and, for a file, `&csv=1`. What each user spends on what is private: looking is recorded
    where titles are shown."""
    if not request.user.has_perm("agents.view_modelcall"):
        raise PermissionDenied
    by = next((known for known in BYS if known.value == request.GET.get("by")), By.USER)
    since, until, asked = _asked(request)
    found = rows(by, asked)
    if by is By.AGENT:
        record(request, [row.owner for row in found if row.owner], "Costs viewed")
    if "csv" in request.GET:
        return as_csv(by, found, f"costs-by-{by}-{since}-{until}")
    page: dict[str, Any] = {"title": "Costs", "by": by, "bys": BYS.items(), "since": since, "until": until}
    page |= {"rows": found, "total": total({at: row.spending for at, row in enumerate(found)})}
    page |= {"dearest": max((row.spending.cost for row in found), default=0), "unpriced": _unpriced(by, asked, found)}
    page |= {"opts": ModelCall._meta, **admin.site.each_context(request)}
    return TemplateResponse(request, "admin/agents/modelcall/costs.html", page)


def _asked(request: HttpRequest) -> tuple[Any, Any, Period]:
    zone = timezone.get_current_timezone()
    try:
        since, until = days(request.GET.dict(), zone)
    except Refused as refused:
        messages.error(request, refused.message)
        since, until = days({}, zone)
    return since, until, period(since, until, zone)


def _unpriced(by: By, asked: Period, found: list[Row]) -> list[Row]:
    return [row for row in (found if by is By.MODEL else rows(By.MODEL, asked)) if row.spending.unpriced]


class ServerPriceForm(forms.ModelForm[ModelPrice]):
    kind = forms.ChoiceField(choices=[(kind.kind, kind.label) for kind in known_kinds() if not kind.is_scripted])


class ServerPriceAdmin(admin.ModelAdmin[ModelPrice]):
    """Staff set prices for everybody; those of users are theirs, and only shown."""

    form = ServerPriceForm
    list_display = ["kind", "model", "for_whom", "input", "output", "cached", "written", "changed_at"]
    list_filter = ["kind", ("user", admin.EmptyFieldListFilter)]
    list_select_related = ["user"]
    search_fields = ["model", "user__email"]
    fields = ["kind", "model", "input", "output", "cached", "written"]
    ordering = ["kind", "model"]

    @admin.display(description="for", ordering="user__email")
    def for_whom(self, price: ModelPrice) -> str:
        return str(price.user) if price.user else "everybody"

    def has_change_permission(self, request: HttpRequest, obj: ModelPrice | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or obj.user is None)

    def has_delete_permission(self, request: HttpRequest, obj: ModelPrice | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.user is None)
