"""Notes, and what they said before (mission E1)."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.owned import OwnedQuerySet


class Author(models.TextChoices):
    USER = "user"
    AGENT = "agent"


class NoteQuerySet(OwnedQuerySet["Note"]):
    """Notes of a user."""


class Note(models.Model):
    """A markdown note of one thread's Agentable, written by the user or the agent."""

    TITLE_LENGTH = 200
    BODY_LENGTH = 200_000

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notes")
    thread = models.ForeignKey("memory.Thread", models.CASCADE, related_name="notes", db_index=False)
    title = models.CharField(max_length=TITLE_LENGTH)
    body = models.TextField(blank=True, default="")
    author = models.CharField(max_length=10, choices=Author, default=Author.USER)
    edited_by = models.CharField(
        max_length=10, choices=Author, blank=True, default="", db_default="", help_text="Empty: its author, so far"
    )
    sources = models.JSONField(
        default=list, blank=True, db_default=[], help_text="Whose texts its writer had read (memory.marks)"
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects = NoteQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at"]
        indexes = [models.Index(fields=["thread", "-updated_at"])]

    def __str__(self) -> str:
        return self.title


class NoteVersion(models.Model):
    """A state that a note was in until somebody changed it: what it said, who had made it so, and when."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    note = models.ForeignKey(Note, models.CASCADE, related_name="versions", db_index=False)
    title = models.CharField(max_length=Note.TITLE_LENGTH)
    body = models.TextField(blank=True, default="")
    author = models.CharField(max_length=10)
    sources = models.JSONField(default=list, blank=True, db_default=[])
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-written_at"]
        indexes = [models.Index(fields=["note", "-written_at"])]

    def __str__(self) -> str:
        return f"{self.title} ({self.written_at:%Y-%m-%d %H:%M})"
