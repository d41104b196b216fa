"""Who works: the assistant, its tasks, the models they think with and the devices that talk to them."""

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.module_loading import import_string

import agents.budgets.models  # noqa: F401  where Django looks for them
from agents.agentable import FEED, Agentable, Limits, Trusting, agentable_of
from agents.model_call import CallStatus as CallStatus, ModelCall as ModelCall, Prompt as Prompt
from agents.model_connection import ModelConnection as ModelConnection
from agents.plan_item import PlanItem as PlanItem
from memory.ids import new_id
from memory.models import AgentRun, Author, Note, OwnedQuerySet, RunStatus, Thread
from memory.notes import NoteRefused, create_note
from memory.text import clip
from tools.base import Audience, Needs


class UserAgent(Trusting):
    """The personal assistant: one per user, permanent; it also holds the user's preferences."""

    class Theme(models.TextChoices):
        SYSTEM = "system"
        LIGHT = "light"
        DARK = "dark"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="agent")
    time_zone = models.CharField(max_length=60, default="Etc/UTC")
    theme = models.CharField(max_length=10, choices=Theme, default=Theme.SYSTEM)
    summariser = models.ForeignKey(
        ModelConnection, models.SET_NULL, null=True, blank=True, related_name="+", help_text="For summaries and titles"
    )
    stand_in = models.ForeignKey(
        ModelConnection, models.SET_NULL, null=True, blank=True, related_name="+", help_text="When a model is away"
    )
    quiet_from = models.TimeField(null=True, blank=True, help_text="From then on agents begin nothing by themselves")
    quiet_to = models.TimeField(null=True, blank=True)
    welcomed = models.BooleanField(default=False, help_text="Whether the first run was finished or skipped")

    prompt = "assistant"
    has = frozenset({Needs.ALL_GOALS})

    def __str__(self) -> str:
        return f"assistant of {self.user}"

    def name(self) -> str:
        return "Assistant"

    def address(self) -> str:
        return reverse("assistant")

    def prompt_for(self, context_type: str) -> tuple[str, dict[str, object]]:
        return ("feed", {}) if context_type == FEED else super().prompt_for(context_type)

    def remembered(self) -> Mapping[str, str]:
        across: str = import_string(settings.AGENT_ACROSS)(self.user)
        return {"goals": across, **super().remembered()}


class TaskStatus(models.TextChoices):
    ACTIVE = "active"
    COMPLETED = "completed"
    PAUSED = "paused"
    CANCELLED = "cancelled"


class AgentTask(Agentable):
    """An autonomous sub-agent: it gets instructions and little context, and reports to the agent that sent it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tasks")
    parent = models.ForeignKey(Thread, models.CASCADE, related_name="tasks")
    title = models.CharField(max_length=200)
    instructions = models.TextField()
    status = models.CharField(max_length=20, choices=TaskStatus, default=TaskStatus.ACTIVE)
    result = models.TextField(blank=True, default="")
    paused_at = models.DateTimeField(null=True, blank=True)
    resume_at = models.DateTimeField(null=True, blank=True, help_text="Null: nothing is known to pass by itself")
    overdue_at = models.DateTimeField(null=True, help_text="When its parent was told that it takes long")
    sent_by = models.ForeignKey(
        AgentRun, models.SET_NULL, null=True, related_name="+", help_text="The run that sent it off"
    )
    origin_type = models.CharField(
        max_length=40, blank=True, default="", help_text="Context type of that run: where it comes from, not a mode"
    )
    report_as_note = models.BooleanField(default=False)

    prompt = "task"
    audience = Audience.TASK
    remembers = False
    reschedules = False
    has_sessions = False

    objects = OwnedQuerySet["AgentTask"].as_manager()

    def __str__(self) -> str:
        return self.title

    def name(self) -> str:
        return self.title

    def briefing(self) -> dict[str, object]:
        return {"title": self.title}

    def address(self) -> str:
        """That of whoever has sent it off."""
        return agentable_of(self.parent).address()

    def tool_modes(self) -> Mapping[str, str]:
        """It is trusted as the agent that sent it off is, and what is off for that is off for it (mission A3)."""
        return agentable_of(self.parent).tool_modes()

    def trusted_as(self) -> UUID:
        return agentable_of(self.parent).trusted_as()

    def connection_id(self) -> UUID | None:
        """What a goal keeps to a model of its own stays there when it sends helpers off."""
        return agentable_of(self.parent).connection_id()

    def limits(self, context_type: str = "") -> Limits:
        limits = super().limits(context_type)
        return dataclasses.replace(
            limits,
            iterations=min(limits.iterations, settings.WAYMARK_TASK_ITERATIONS),
            history_entries=settings.WAYMARK_TASK_HISTORY_ENTRIES,
        )

    def reports_to(self) -> Thread | None:
        return self.parent

    def settled(self, status: RunStatus, report: str, resume_after: float | None = None) -> bool:
        """A task that failed is paused; the times are PostgreSQL's (mission B5, invariant I14). One that was called
        back or given up stays as it is, for the reason that stands there: whoever did so knows."""
        outcomes = {RunStatus.SUCCEEDED: TaskStatus.COMPLETED, RunStatus.CANCELLED: TaskStatus.CANCELLED}
        outcome = outcomes.get(status, TaskStatus.PAUSED)
        paused = outcome == TaskStatus.PAUSED
        mine = AgentTask.objects.filter(pk=self.pk).exclude(status=TaskStatus.CANCELLED)
        if not mine.update(
            status=outcome,
            result=report,
            paused_at=Now() if paused else None,
            resume_at=Now() + timedelta(seconds=resume_after) if paused and resume_after is not None else None,
        ):
            return False
        if outcome == TaskStatus.COMPLETED and self.report_as_note:
            self.result = report
            sources = Thread.objects.get(pk=self.thread_id).sources
            with suppress(NoteRefused):  # no room is no reason to lose the report, which goes to the parent anyhow
                create_note(self.parent, *self.as_note(), Author.AGENT, sources)
        return True

    def as_note(self) -> tuple[str, str]:
        """Title and body of its report as a note."""
        return clip(self.title, Note.TITLE_LENGTH), self.result[: Note.BODY_LENGTH]


class PriceQuerySet(OwnedQuerySet["ModelPrice"]):
    pass


class ModelPrice(models.Model):
    """What a model costs a user, or, without a user, everybody on this server. It goes before every list price.

    In US dollars per million tokens; an empty price of the cache is that of all input.
    """

    DEAREST: ClassVar = Decimal(100_000)
    FIT: ClassVar = [MinValueValidator(0), MaxValueValidator(DEAREST)]

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="model_prices"
    )
    kind = models.CharField(max_length=20, help_text="A kind of agents.providers.catalog")
    model = models.CharField(max_length=200)
    input = models.DecimalField(max_digits=12, decimal_places=6, validators=FIT)
    output = models.DecimalField(max_digits=12, decimal_places=6, validators=FIT)
    cached = models.DecimalField(max_digits=12, decimal_places=6, validators=FIT, null=True, blank=True)
    written = models.DecimalField(max_digits=12, decimal_places=6, validators=FIT, null=True, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = PriceQuerySet.as_manager()

    class Meta:
        ordering = ["kind", "model"]
        constraints = [
            models.UniqueConstraint(fields=["user", "kind", "model"], nulls_distinct=False, name="one_price_per_model")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.model}"


class DeviceQuerySet(OwnedQuerySet["DeviceToken"]):
    pass


class DeviceToken(models.Model):
    """A device that may use the API. Only the SHA-256 of its token is kept."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="devices")
    name = models.CharField(max_length=100, blank=True, default="")
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name or str(self.id)


class HealthReport(models.Model):
    """What one check of `agents.engine.health` found at one time, and how much of it was put right."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    name = models.CharField(max_length=40, help_text="A check of agents.engine.health")
    found = models.PositiveIntegerField(default=0)
    fixed = models.PositiveIntegerField(default=0)
    by_hand = models.BooleanField(default=False)
    examples = models.JSONField(default=list, blank=True, help_text="The first findings, a list of strings")
    error = models.TextField(blank=True, default="", help_text="Why the check could not be made")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["-at"])]

    def __str__(self) -> str:
        return f"{self.name}: {self.found} found, {self.fixed} fixed"

    @property
    def is_well(self) -> bool:
        return not self.error and self.found == self.fixed
