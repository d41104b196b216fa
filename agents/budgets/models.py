"""Budgets, and what is held in them for work that goes on."""

from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.ids import new_id
from memory.models import AgentRun, OwnedQuerySet, Thread

# Of one limit. More is no limit that anybody means.
MOST_DOLLARS, MOST_TOKENS = 10_000_000, 10**15


class Window(models.TextChoices):
    """When the count begins anew. A budget of each run has nothing that is counted beyond the run."""

    RUN = "run", "each run"
    DAY = "day", "day"
    MONTH = "month", "month"
    TOTAL = "total", "in total"


class Budget(models.Model):
    """How much may be spent in a window: by all that a user's agents do, or below one thread (a goal or a task).

    money, tokens: the limits; one of them may be null. extra: US dollars that the user has added for this window only.
    spent, reserved: of the window that began at `begins`, in the time zone `counted_in`. A row is only read and changed
    under its lock, for a moment: what its window is now, `agents.budgets.counting` says.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="budgets")
    thread = models.ForeignKey(Thread, models.CASCADE, null=True, blank=True, related_name="budgets")
    window = models.CharField(max_length=10, choices=Window, default=Window.MONTH)
    money = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True, help_text="US dollars")
    tokens = models.PositiveBigIntegerField(null=True, blank=True)
    extra = models.DecimalField(max_digits=12, decimal_places=4, default=Decimal(0), db_default=Decimal(0))
    begins = models.DateTimeField(null=True)
    counted_in = models.CharField(max_length=60, default="", db_default="", help_text="Time zone of its window")
    spent = models.DecimalField(max_digits=18, decimal_places=9, default=Decimal(0), db_default=Decimal(0))
    spent_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    reserved = models.DecimalField(max_digits=18, decimal_places=9, default=Decimal(0), db_default=Decimal(0))
    reserved_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    warned_at = models.DateTimeField(null=True, help_text="When its user was told that most of it is spent")
    created_at = models.DateTimeField(db_default=Now())

    now: datetime
    zone: ZoneInfo
    """PostgreSQL's time when it was locked, and the zone of its windows."""

    objects = OwnedQuerySet["Budget"].as_manager()

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["user", "thread", "window"], nulls_distinct=False, name="one_budget_each"),
            models.CheckConstraint(condition=Q(money__isnull=False) | Q(tokens__isnull=False), name="budget_of_what"),
        ]

    def __str__(self) -> str:
        return f"budget of {self.user} for {self.get_window_display()}"

    @property
    def counts(self) -> bool:
        """Whether anything is counted beyond a run."""
        return self.window != Window.RUN

    @property
    def takes_more(self) -> bool:
        """Whether dollars can be added for the present window: not to each run for ever, and not to tokens."""
        return self.counts and self.money is not None

    def begin(self, begins: datetime | None) -> None:
        """Count anew when a new window has begun."""
        if self.begins != begins:
            self.begins, self.spent, self.spent_tokens = begins, Decimal(0), 0
            self.extra, self.warned_at = Decimal(0), None


class Reservation(models.Model):
    """What is held in one budget for a run that is at work, or for a call beside the runs. It covers what the run has
    spent since it was last booked, and what its open call may come to at most: `AgentRun.held` when it was made."""

    id = models.BigAutoField(primary_key=True)
    budget = models.ForeignKey(Budget, models.CASCADE, related_name="reservations")
    run = models.ForeignKey(AgentRun, models.CASCADE, null=True, related_name="reservations")
    call = models.ForeignKey("agents.ModelCall", models.CASCADE, null=True, related_name="reservations")
    money = models.DecimalField(max_digits=18, decimal_places=9, default=Decimal(0))
    tokens = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "budget"], condition=Q(run__isnull=False), name="one_per_run"),
            models.CheckConstraint(
                condition=Q(run=None, call__isnull=False) | Q(run__isnull=False, call=None), name="held_for_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.money} and {self.tokens} tokens for {self.run_id or self.call_id}"
