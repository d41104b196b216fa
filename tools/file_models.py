"""What is known of the files in agents' workspaces beside what lies on the disk. The disk decides what there is."""

from django.db import models, transaction
from django.db.models.functions import Now
from django.db.models.signals import post_delete
from django.dispatch import receiver

from memory.models import Thread
from tools.sandbox.folder import Folder


class Workspace(models.Model):
    """Of one agent. Whoever changes something in it locks this row.

    sources: where text of strangers came from that ever went into it (mission D10); what nothing else is known of may
        be made of that.
    folders: made for a file that needed them; they go when they are empty.
    """

    thread = models.OneToOneField(Thread, models.CASCADE, primary_key=True, related_name="workspace")
    sources = models.JSONField(default=list)
    folders = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"workspace of {self.thread_id}"


class Writer(models.TextChoices):
    """Who let a file be as it is. RESTORED: it was put back by an undo."""

    AGENT = "agent", "the agent"
    COMMAND = "command", "a command"
    USER = "user", "you"
    RESTORED = "restored", "an undo"


class WorkspaceFile(models.Model):
    """A file as it was written last by somebody we know.

    stamp: of the file on the disk (`sandbox.folder.Entry`); when that has another, somebody else has changed it.
    sources: where text of strangers in it came from.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="files", db_index=False)
    path = models.TextField()
    stamp = models.TextField()
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    mode = models.PositiveIntegerField()
    writer = models.CharField(max_length=20, choices=Writer)
    sources = models.JSONField(default=list)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["workspace", "path"], name="one_row_per_file")]

    def __str__(self) -> str:
        return self.path


@receiver(post_delete, sender=Thread)
def forget_files(instance: Thread, **kwargs: object) -> None:
    """The files of an agent go with it, whoever deletes it: its user, or staff with the user."""
    transaction.on_commit(Folder(instance.pk).forget)


class FileWrite(models.Model):
    """What a call is about to write, on record before it does (docs/reliability.md, "Files"): as long as its staged
    file is there it has not, and when that is gone it has.

    action: the call's id. record: what an undo needs (tools.changes.UndoRecord).
    """

    action = models.UUIDField(primary_key=True, editable=False)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="writes")
    record = models.JSONField()

    def __str__(self) -> str:
        return str(self.action)
