"""What staff pages have in common: they show, they do not change, and looking at private content is recorded."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.text import clean


class ReadOnlyAdmin[M: Model](admin.ModelAdmin[M]):
    """Nothing is added, changed or deleted here: what agents do goes through services and leaves its own record."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().change_view(request, object_id, form_url, extra_context)
        seen = (getattr(response, "context_data", None) or {}).get("original")
        if seen is not None:
            record(request, [seen], "Viewed")
        return response


def record(request: HttpRequest, objects: Iterable[Model], message: str) -> None:
    """Write down that a member of staff did or saw something; the history of each object shows it."""
    assert request.user.pk is not None
    LogEntry.objects.log_actions(request.user.pk, objects, CHANGE, message)


def record_use(request: HttpRequest, model: type[Model], message: str) -> None:
    """Write down what a member of staff did with a list as a whole, such as a search or an export."""
    kind, message = ContentType.objects.get_for_model(model), clean(message)
    assert request.user.pk is not None
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=kind,
        object_repr=message[:200],
        action_flag=CHANGE,
        change_message=message[:1000],
    )


def pretty(value: object) -> SafeString:
    """A JSON value, indented and escaped."""
    return format_html('<pre class="wm-json">{}</pre>', json.dumps(value, indent=2, ensure_ascii=False))
