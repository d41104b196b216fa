"""What an agent has set itself to do: tasks, and below each the subtasks whose end it proves (mission A7, A8)."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.models import OwnedQuerySet, Thread


class PlanStatus(models.TextChoices):
    """DROPPED: a newer plan took its place."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    DROPPED = "dropped"


class PlanQuerySet(OwnedQuerySet["PlanItem"]):
    def current(self) -> Self:
        """The plan that holds, in its order."""
        return self.exclude(status=PlanStatus.DROPPED).order_by("position")


class PlanItem(models.Model):
    """A task (without a parent) or a subtask of an agent's plan. A task is over when its subtasks are.

    position: counts all items of a plan, each task before its subtasks. number: "2" or "2.1", as the model names it.
    evidence: [{"key", "words"}] of what proved a subtask done (`agents.evidence`).
    """

    TITLE_LENGTH = 300
    NUMBER_LENGTH = 8

    proof_gone: bool = False
    """Of one that is done, whether that is proven no more (`agents.planned`); not in the database."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="plan", db_index=False)
    parent = models.ForeignKey("self", models.CASCADE, null=True, related_name="subtasks")
    position = models.PositiveSmallIntegerField()
    number = models.CharField(max_length=NUMBER_LENGTH)
    title = models.CharField(max_length=TITLE_LENGTH)
    status = models.CharField(max_length=10, choices=PlanStatus, default=PlanStatus.OPEN)
    reason = models.TextField(blank=True, default="")
    evidence = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)

    objects = PlanQuerySet.as_manager()

    class Meta:
        ordering = ["thread", "created_at", "position"]
        indexes = [
            models.Index(fields=["thread", "position"], condition=~models.Q(status="dropped"), name="plans_that_hold")
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.title}"

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done, or again."""
        return self.status == PlanStatus.OPEN or self.proof_gone
