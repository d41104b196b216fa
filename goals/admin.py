"""Staff pages of goals, of what the clock begins, of what is measured, of feeds, and of what users are told: lists show
nothing private."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from goals.models import Feed, FeedItem, Goal, Measurement, Notice, PushDevice, Receipt, Schedule, Target
from memory.admin_base import ReadOnlyAdmin


@admin.register(Goal)
class GoalAdmin(ReadOnlyAdmin[Goal]):
    list_display = ["title", "user", "state", "created_at"]
    list_filter = [("archived_at", admin.EmptyFieldListFilter)]
    list_select_related = ["user", "thread"]
    search_fields = ["title", "user__email"]
    ordering = ["-id"]
    fields = [
        *("title", "description", "user", "state", "thread", "blaze", "model_connection", "modes"),
        *("created_at", "archived_at"),
    ]

    @admin.display(description="status")
    def state(self, goal: Goal) -> str:
        return goal.status.label


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin[Schedule]):
    list_display = ["id", "user", "kind", "author", "paused", "next_at", "last_at", "last_result"]
    list_filter = ["kind", "author", "paused", "last_result"]
    list_select_related = ["user"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = [
        *("user", "thread", "kind", "author", "rule", "intent", "sources", "only_if_changed", "paused", "next_at"),
        *("last_slot", "last_at", "last_result", "last_run", "skipped_from", "created_at"),
    ]


@admin.register(Target)
class TargetAdmin(ReadOnlyAdmin[Target]):
    list_display = ["id", "user", "thread", "deadline", "flat", "created_at"]
    list_select_related = ["user", "thread"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = ["user", "thread", "name", "value", "unit", "deadline", "best", "flat", "created_at"]


@admin.register(Measurement)
class MeasurementAdmin(ReadOnlyAdmin[Measurement]):
    list_display = ["id", "user", "thread", "author", "created_at"]
    list_filter = ["author"]
    list_select_related = ["user", "thread"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = ["user", "thread", "value", "day", "note", "author", "sources", "message", "action", "created_at"]


@admin.register(Feed)
class FeedAdmin(ReadOnlyAdmin[Feed]):
    list_display = ["id", "user", "day", "since", "until", "run", "written_at"]
    list_select_related = ["user"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = ["user", "thread", "day", "since", "until", "facts", "sources", "run", "brief", "written_at", "created_at"]


@admin.register(FeedItem)
class FeedItemAdmin(ReadOnlyAdmin[FeedItem]):
    list_display = ["id", "user", "feed", "kind", "rating", "dismissed_at", "created_at"]
    list_filter = ["kind", "rating", ("dismissed_at", admin.EmptyFieldListFilter)]
    list_select_related = ["user", "feed"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = [
        *("user", "feed", "thread", "place", "kind", "title", "body", "evidence", "sources"),
        *("rating", "dismissed_at", "created_at"),
    ]


class ReceiptsOfNotice(admin.TabularInline[Receipt, Notice]):
    """The ways that a notice went."""

    model = Receipt
    fields = ["channel", "whom", "state", "detail", "tries", "created_at", "at", "next_at"]
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin[Notice]):
    list_display = ["id", "user", "kind", "at", "seen_at", "settled_at"]
    list_filter = ["kind", ("seen_at", admin.EmptyFieldListFilter), ("settled_at", admin.EmptyFieldListFilter)]
    list_select_related = ["user"]
    search_fields = ["user__email"]
    ordering = ["-id"]
    fields = ["user", "thread", "kind", "said", "subject", "run", "at", "seen_at", "settled_at", "created_at"]
    inlines = [ReceiptsOfNotice]


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin[Receipt]):
    """What failed, of everybody."""

    list_display = ["id", "user", "channel", "whom", "state", "detail", "tries", "at", "next_at"]
    list_filter = ["channel", "state"]
    list_select_related = ["notice__user"]
    search_fields = ["notice__user__email", "whom"]
    ordering = ["-id"]
    fields = ["notice", "channel", "device", "whom", "state", "detail", "tries", "created_at", "at", "next_at"]

    @admin.display(ordering="notice__user")
    def user(self, receipt: Receipt) -> str:
        return str(receipt.notice.user)


@admin.register(PushDevice)
class PushDeviceAdmin(ReadOnlyAdmin[PushDevice]):
    list_display = ["id", "user", "name", "created_at"]
    list_select_related = ["user"]
    search_fields = ["user__email", "name"]
    ordering = ["-id"]
    fields = ["user", "name", "token", "created_at"]
