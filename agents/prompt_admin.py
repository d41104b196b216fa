"""Staff page of one call of a model: what was sent, word for word, with the size of each section (mission E2)."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.models import ModelCall
from agents.sent import sent_by
from memory.admin_base import record

# A prompt is a conversation, so both are needed.
NEEDED = ("agents.view_modelcall", "memory.view_thread")


def prompt(request: HttpRequest, call_id: UUID) -> HttpResponse:
    """Show it, and write down who looked."""
    if not request.user.has_perms(NEEDED):
        raise PermissionDenied
    call = get_object_or_404(ModelCall.objects.select_related("run__thread__user", "thread__user", "user"), pk=call_id)
    record(request, [call], "Viewed the prompt")
    page: dict[str, Any] = {"title": "Prompt", "call": call, "sent": sent_by(call)}
    page |= {"opts": ModelCall._meta, **admin.site.each_context(request)}
    return TemplateResponse(request, "admin/agents/modelcall/prompt.html", page)


def link(call: ModelCall | None, words: str) -> SafeString | str:
    """A link to the prompt of a call; "-" when none is kept."""
    if call is None or call.system is None:
        return "-"
    return format_html('<a href="{}">{}</a>', reverse("admin:agents_modelcall_prompt", args=[call.pk]), words)
