"""Staff page of what users attach: who keeps how much of what. The files themselves are not shown."""

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin_base import ReadOnlyAdmin
from memory.models import Attachment


@admin.register(Attachment)
class AttachmentAdmin(ReadOnlyAdmin[Attachment]):
    list_display = ["name", "user", "media_type", "size", "created_at"]
    list_filter = ["media_type", "created_at"]
    list_select_related = ["thread__user"]
    search_fields = ["name", "thread__user__email"]
    ordering = ["-id"]
    fields = ["name", "user", "thread", "message", "media_type", "size", "sha256", "created_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attachment]:
        return super().get_queryset(request).defer("content", "thumbnail", "block")

    @admin.display(ordering="thread__user__email")
    def user(self, attachment: Attachment) -> User:
        return attachment.thread.user
