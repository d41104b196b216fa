"""What is wanted."""

from collections.abc import Collection, Mapping
from typing import Self
from uuid import UUID
from xml.sax.saxutils import escape

from django.conf import settings
from django.db import models
from django.urls import reverse

from agents.agentable import Trusting
from agents.models import ModelConnection
from goals.feed import Feed as Feed, FeedItem as FeedItem, ItemKind as ItemKind, Rating as Rating
from goals.look import Look as Look
from goals.measured import Measurement as Measurement, Target as Target
from goals.measuring import outlook, said as measured
from goals.notice import (
    Glance as Glance,
    Notice as Notice,
    NoticeChoice as NoticeChoice,
    NoticeKind as NoticeKind,
    Receipt as Receipt,
)
from goals.outlook_words import beside
from goals.push_device import PushDevice as PushDevice
from goals.schedule import Result as Result, Schedule as Schedule, ScheduleKind as ScheduleKind
from memory.models import OwnedQuerySet
from tools.base import Needs


class GoalStatus(models.TextChoices):
    WORKING = "working"
    WAITING = "waiting"
    ARCHIVED = "archived"


class Blaze(models.TextChoices):
    """The painted sign on the tree: each goal has its own (symbols `b-…` of icons.svg)."""

    PEAK = "peak"
    BARS = "bars"
    RING = "ring"
    SPLIT = "split"
    CHEVRON = "chev"


class GoalQuerySet(OwnedQuerySet["Goal"]):
    def current(self) -> Self:
        """Goals that are not put away."""
        return self.filter(archived_at=None)

    def called(self, name: str) -> Self:
        """Goals of that title; when there is none, those that begin with it."""
        return self.filter(title__iexact=name) or self.filter(title__istartswith=name)


class Goal(Trusting):
    """Something a person wants, pursued for weeks in one conversation."""

    TITLE_LENGTH = 120

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="goals")
    title = models.CharField(max_length=TITLE_LENGTH)
    description = models.TextField(blank=True, default="")
    archived_at = models.DateTimeField(null=True, blank=True)
    blaze = models.CharField(max_length=10, choices=Blaze, default=Blaze.PEAK)
    packs = models.JSONField(default=list, blank=True, db_default=[], help_text="tools.base.Pack, those switched on")
    model_connection = models.ForeignKey(
        ModelConnection, models.SET_NULL, null=True, blank=True, related_name="+", help_text="Empty: the user's default"
    )

    prompt = "goal"
    has = frozenset({Needs.TARGET})

    objects = GoalQuerySet.as_manager()

    class Meta:
        ordering = ["-thread__active_at"]

    def __str__(self) -> str:
        return self.title

    @property
    def status(self) -> GoalStatus:
        """Derived from the thread's row, so that it is never stale: working means a run is live."""
        if self.archived_at is not None:
            return GoalStatus.ARCHIVED
        return GoalStatus.WORKING if self.thread.live_run else GoalStatus.WAITING

    def name(self) -> str:
        return self.title

    def briefing(self) -> dict[str, object]:
        return {"title": self.title, "description": self.description}

    def written(self) -> str:
        return f"{self.title}\n{self.description}"

    def tool_packs(self) -> Collection[str]:
        packs: list[str] = self.packs
        return packs

    def remembered(self) -> Mapping[str, str]:
        stands = outlook(self.thread_id)
        return {**super().remembered(), "target": escape(measured(stands)) if stands else ""}

    def address(self) -> str:
        return reverse("goal", args=[self.pk])

    def beside(self) -> str:
        return beside(self.pk, self.thread_id)

    def connection_id(self) -> UUID | None:
        return self.model_connection_id
