"""Documents: what steers all agents of a user, and what one agent remembers in its own words (mission E1)."""

from typing import Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.note import Author
from memory.owned import OwnedQuerySet

BOOTSTRAP: Final = ("AGENTS", "SOUL", "USER", "IDENTITY")
"""Documents of a user, for all of their agents, in the order in which these are told of them."""
MEMORY: Final = "MEMORY"
"""What an agent remembers for long."""


class Document(models.Model):
    """A markdown document. Those of `BOOTSTRAP` belong to a user; to an agent its `MEMORY` and its daily notes.

    name: of a daily note its day in the user's zone, such as 2026-11-29. author: the user as soon as anything of it was
    written by them, since agents do not change that in a stranger's name.
    """

    NAME_LENGTH = 10

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="documents", db_index=False)
    thread = models.ForeignKey("memory.Thread", models.CASCADE, null=True, related_name="documents")
    name = models.CharField(max_length=NAME_LENGTH)
    text = models.TextField(blank=True, default="")
    author = models.CharField(max_length=10, choices=Author)
    edited_by = models.CharField(max_length=10, choices=Author)
    sources = models.JSONField(
        default=list, blank=True, db_default=[], help_text="Whose texts its writer had read (memory.marks)"
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["Document"].as_manager()

    class Meta:
        ordering = ["-name"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "thread", "name"], nulls_distinct=False, name="one_document_per_name"
            ),
            models.CheckConstraint(
                condition=models.Q(thread=None, name__in=BOOTSTRAP)
                | (models.Q(thread__isnull=False) & ~models.Q(name__in=BOOTSTRAP)),
                name="bootstrap_documents_are_the_users",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_daily(self) -> bool:
        return self.name[:1].isdigit()


class DocumentVersion(models.Model):
    """What a document said until somebody changed it; who had made it so, and when."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="versions", db_index=False)
    text = models.TextField(blank=True, default="")
    author = models.CharField(max_length=10)
    sources = models.JSONField(default=list, blank=True, db_default=[])
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-written_at"]
        indexes = [models.Index(fields=["document", "-written_at"])]

    def __str__(self) -> str:
        return f"{self.document_id} ({self.written_at:%Y-%m-%d %H:%M})"
