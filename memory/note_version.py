"""What notes said before (mission E1)."""

from django.db import models

from memory.ids import new_id


class NoteVersion(models.Model):
    """A state that a note was in until somebody changed it: what it said, who had made it so, and when."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    note = models.ForeignKey("memory.Note", models.CASCADE, related_name="versions", db_index=False)
    title = models.CharField(max_length=200)
    body = models.TextField(blank=True, default="")
    author = models.CharField(max_length=10)
    sources = models.JSONField(default=list, blank=True, db_default=[])
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-written_at"]
        indexes = [models.Index(fields=["note", "-written_at"])]

    def __str__(self) -> str:
        return f"{self.title} ({self.written_at:%Y-%m-%d %H:%M})"
