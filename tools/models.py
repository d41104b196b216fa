"""The record of everything that agents do."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.models import AgentRun, OwnedQuerySet, Thread
from tools.base import Effect, Reversal, Risk


class ActionStatus(models.TextChoices):
    INTENT = "intent"
    STARTED = "started"
    DONE = "done"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


OPEN = (ActionStatus.INTENT, ActionStatus.STARTED)


class ActionQuerySet(OwnedQuerySet["AgentAction"]):
    def open(self) -> Self:
        return self.filter(status__in=OPEN)


class AgentAction(models.Model):
    """One tool call: journal, audit, approval target and undo record in one row.

    The id is deterministic (uuid5 of run, step, index), so that a row can be read again after a connection was lost
    at its commit.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(AgentRun, models.CASCADE, related_name="actions", db_index=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="actions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="actions", db_index=False)
    step = models.PositiveIntegerField()
    position = models.PositiveIntegerField(help_text="Index of the call in its reply")
    call_id = models.TextField(help_text="The model's own id of the call")
    tool = models.CharField(max_length=100)
    effect = models.CharField(max_length=20, choices=[(e.value, e.value) for e in Effect])
    risk = models.CharField(max_length=20, choices=[(r.value, r.value) for r in Risk])
    reversal = models.CharField(max_length=20, choices=[(r.value, r.value) for r in Reversal])
    arguments = models.JSONField(help_text="As the model gave them; validated by the tool's own schema")
    status = models.CharField(max_length=20, choices=ActionStatus, default=ActionStatus.INTENT)
    summary = models.TextField(blank=True, default="", db_default="")
    output = models.TextField(blank=True, default="", db_default="")
    error = models.TextField(blank=True, default="", db_default="")
    undo = models.JSONField(null=True, blank=True, help_text="Written by the tool, read by its own undo")
    fence = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = ActionQuerySet.as_manager()

    class Meta:
        db_table = "agent_actions"
        ordering = ["created_at", "step", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "step", "position"], name="one_action_per_call")]
        indexes = [models.Index(fields=["user", "-created_at"])]

    def __str__(self) -> str:
        return f"{self.tool} ({self.status})"
