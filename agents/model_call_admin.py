"""Staff page of model calls: what was used and what it cost, summed by day and model."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString

from agents import prompt_admin
from agents.costs_admin import costs
from agents.models import CallStatus, ModelCall
from memory.admin_base import ReadOnlyAdmin

DAYS = 14


class ModelCallAdmin(ReadOnlyAdmin[ModelCall]):
    change_list_template = "admin/agents/modelcall/change_list.html"
    list_display = [
        *("created_at", "user", "model_there", "status", "step", "attempt"),
        *("tokens", "cost", "latency_ms", "prompt"),
    ]
    readonly_fields = ["prompt"]
    list_filter = ["status", "provider", "estimated", ("cost", admin.EmptyFieldListFilter), "created_at"]
    list_select_related = ["run__thread__user", "thread__user", "user"]
    search_fields = ["model", "run__thread__user__email", "thread__user__email", "user__email"]
    ordering = ["-created_at"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("costs/", view(costs), name="costs"),
            path("<uuid:call_id>/prompt/", view(prompt_admin.prompt), name="agents_modelcall_prompt"),
            *super().get_urls(),
        ]

    @admin.display(ordering="run__thread__user__email")
    def user(self, call: ModelCall) -> str:
        thread = call.run.thread if call.run else call.thread
        return str(thread.user if thread else call.user)

    @admin.display(description="model", ordering="model")
    def model_there(self, call: ModelCall) -> str:
        answered = f" → {call.answered_by}" if call.answered_by not in ("", call.model) else ""
        return f"{call.provider} {call.model}{answered}"

    @admin.display(description="tokens in, cached, out", ordering="input_tokens")
    def tokens(self, call: ModelCall) -> str:
        counted = (call.input_tokens, call.cached_tokens, call.output_tokens)
        figures = " · ".join("?" if figure is None else f"{figure:,}" for figure in counted)
        return figures + (" (estimated)" if call.estimated else "") + (" (partial)" if call.is_partial else "")

    @admin.display(description="prompt")
    def prompt(self, call: ModelCall) -> SafeString | str:
        return prompt_admin.link(call, "Show")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        shown = getattr(response, "context_data", None)
        if shown is not None and "cl" in shown:
            sums = list(by_day_and_model(shown["cl"].queryset))
            shown["sums"] = sums
            shown["dearest"] = max((row["cost"] or 0 for row in sums), default=0)
            shown["days"] = DAYS
        return response


def by_day_and_model(calls: QuerySet[ModelCall]) -> QuerySet[ModelCall, Any]:
    """Sum the calls of the last days. `cost` is the known part; `unpriced` says how many calls it leaves out."""
    recent = calls.filter(created_at__gte=timezone.now() - timedelta(days=DAYS)).order_by()
    finished = Q(status=CallStatus.DONE)
    return (
        recent.annotate(day=TruncDate("created_at"))
        .values("day", "provider", "model")
        .annotate(
            calls=Count("pk"),
            failed=Count("pk", filter=Q(status=CallStatus.FAILED)),
            unpriced=Count("pk", filter=finished & Q(cost=None)),
            tokens_in=Sum("input_tokens"),
            tokens_out=Sum("output_tokens"),
            tokens_cached=Sum("cached_tokens"),
            cost=Sum("cost"),
            slowest=Max("latency_ms"),
        )
        .order_by("-day", "provider", "model")
    )
