"""What staff see of budgets."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from agents.budgets import room, words
from agents.budgets.models import Budget
from memory.admin_base import ReadOnlyAdmin


class BudgetAdmin(ReadOnlyAdmin[Budget]):
    list_display = ["user", "limits", "thread", "spent", "spent_tokens", "reserved", "share", "begins"]
    list_filter = ["window"]
    list_select_related = ["user", "thread"]
    search_fields = ["user__email"]

    @admin.display(description=_("limit"))
    def limits(self, budget: Budget) -> str:
        return words.limits_of(budget)

    @admin.display(description=_("share spent"))
    def share(self, budget: Budget) -> str:
        return f"{room.share_spent(budget):.0%}"
