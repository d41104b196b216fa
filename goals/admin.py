"""Staff page of goals."""

from django.contrib import admin

from goals.models import Goal
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
