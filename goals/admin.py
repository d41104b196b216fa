"""Staff pages of goals, of what the clock begins, of what is measured, and of feeds: lists show nothing private."""

from django.contrib import admin

from goals.models import Feed, FeedItem, Goal, Measurement, Schedule, Target
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
