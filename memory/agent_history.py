"""Archived sessions: what an agent and its user said before the live history begins."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.ids import new_id
from memory.owned import OwnedQuerySet

TITLE_LENGTH = 120


class ArchiveStatus(models.TextChoices):
    RESERVED = "reserved"
    DONE = "done"
    FAILED = "failed"


class ArchiveReason(models.TextChoices):
    IDLE = "idle"
    LONG = "long"
    FEED = "feed"
    BY_HAND = "by_hand", "by hand"


class AgentHistoryQuerySet(OwnedQuerySet["AgentHistory"]):
    owner = "thread__user"

    def done(self) -> Self:
        return self.filter(status=ArchiveStatus.DONE)


class AgentHistory(models.Model):
    """One session of a thread, archived: its entries as they were, and a summary (mission B7).

    A row is reserved before the summary is asked for and done when the session has been cut (`memory.archive`);
    `token` says who may finish it, `due_at` when another may take it up. Beside the indexes below there are a GIN
    index on `entries` (migration 0002) and one for full text on `title`, `summary` and `text` (migration 0011).

    first_seq, last_seq: which entries of the thread.
    position: of the last message that the user saw in it.
    text: what was said, shortened to what a search index can take.
    title: empty when the model gave none.
    model: which one wrote title and summary; empty when none did.
    input_tokens, output_tokens: what the runs of the session used.
    tries: how often the summary has failed.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    thread = models.ForeignKey("memory.Thread", models.CASCADE, related_name="sessions", db_index=False)
    generation = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=ArchiveStatus, default=ArchiveStatus.RESERVED)
    reason = models.CharField(max_length=10, choices=ArchiveReason)
    first_seq = models.PositiveIntegerField()
    last_seq = models.PositiveIntegerField()
    position = models.BigIntegerField(null=True)
    entries = models.JSONField(default=list, help_text="memory.archived.Entry, a list")
    text = models.TextField(blank=True, default="")
    title = models.CharField(max_length=TITLE_LENGTH, blank=True, default="")
    summary = models.TextField(blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    message_count = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    token = models.UUIDField(null=True)
    due_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    objects = AgentHistoryQuerySet.as_manager()

    class Meta:
        ordering = ["-generation"]
        verbose_name = "archived session"
        constraints = [models.UniqueConstraint(fields=["thread", "generation"], name="one_archive_per_generation")]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(status=ArchiveStatus.RESERVED), name="reserved_archives")
        ]

    def __str__(self) -> str:
        return f"session {self.generation + 1} of {self.thread_id} ({self.status})"
