"""The feed: what the assistant writes across a user's goals, once a day (mission A13)."""

from typing import Literal
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from pydantic import BaseModel, ConfigDict

from memory.ids import new_id
from memory.models import OwnedQuerySet, Thread


class Evidence(BaseModel):
    """What something that is said of the user's goals rests on. of, id: a message or an action. said: it in a line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: Literal["message", "action"]
    id: UUID
    said: str


class Fact(BaseModel):
    """What there was to tell. name: by which the model speaks of it. kind: of goals.updates. thread: of the goal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: str
    thread: UUID
    evidence: Evidence


class Feed(models.Model):
    """One day's, of which there is one however many look at the clock.

    thread: of the assistant. day: on its user's wall. since, until: the time that it tells of. facts: what there was to
    tell, a list of Fact. run: that writes it, or has written it. brief: all of it in a few sentences.
    """

    BRIEF_LENGTH = 1_000

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="feeds", db_index=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="+")
    day = models.DateField()
    since = models.DateTimeField()
    until = models.DateTimeField()
    facts = models.JSONField(default=list, help_text="goals.feed.Fact, a list")
    sources = models.JSONField(default=list, blank=True, help_text="Whose texts its writer had read (memory.marks)")
    run = models.UUIDField(null=True)
    brief = models.TextField(blank=True, default="")
    written_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["Feed"].as_manager()

    class Meta:
        ordering = ["-day"]
        constraints = [models.UniqueConstraint(fields=["user", "day"], name="one_feed_a_day")]

    def __str__(self) -> str:
        return f"feed of {self.day}"


class ItemKind(models.TextChoices):
    PROGRESS = "progress"
    DISCOVERY = "discovery"
    QUESTION = "question"
    DECISION = "decision", "decision needed"


class Rating(models.IntegerChoices):
    LESS = -1
    NONE = 0
    MORE = 1


class FeedItem(models.Model):
    """One thing that a feed tells of. thread: of the goal that it is about, or of the assistant. evidence: what it
    rests on, a list of Evidence."""

    TITLE_LENGTH = 120
    BODY_LENGTH = 2_000

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="feed_items", db_index=False)
    feed = models.ForeignKey(Feed, models.CASCADE, related_name="items")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="feed_items")
    place = models.PositiveIntegerField(help_text="Among those of its feed")
    kind = models.CharField(max_length=20, choices=ItemKind)
    title = models.CharField(max_length=TITLE_LENGTH)
    body = models.TextField(blank=True, default="")
    evidence = models.JSONField(default=list, blank=True, help_text="goals.feed.Evidence, a list")
    sources = models.JSONField(default=list, blank=True, help_text="Whose texts its writer had read (memory.marks)")
    rating = models.SmallIntegerField(choices=Rating, default=Rating.NONE)
    dismissed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["FeedItem"].as_manager()

    class Meta:
        ordering = ["feed", "place"]
        indexes = [models.Index(fields=["user", "-created_at"])]

    def __str__(self) -> str:
        return self.title
