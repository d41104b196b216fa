"""What a user attached to a message. The bytes are in the row (docs/decisions/0003): one commit, one backup, every
machine."""

from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.owned import OwnedQuerySet


class AttachmentQuerySet(OwnedQuerySet["Attachment"]):
    owner = "thread__user"


class Attachment(models.Model):
    """A picture or a file of a message. Its row never changes, and goes with its message or its thread.

    place: its order within the message. media_type: by its content. size: of the content, in bytes.
    block: what the history holds of it (`memory.messages.Image` or `File`), taken over with the message.
    thumbnail: of a picture, in the same format. sha256: of the content.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    thread = models.ForeignKey("memory.Thread", models.CASCADE, related_name="attachments")
    message = models.ForeignKey("memory.ThreadMessage", models.CASCADE, related_name="attachments", db_index=False)
    place = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=120)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    block = models.JSONField(help_text="memory.messages.Image or File")
    content = models.BinaryField()
    thumbnail = models.BinaryField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = AttachmentQuerySet.as_manager()

    class Meta:
        ordering = ["place"]
        constraints = [models.UniqueConstraint(fields=["message", "place"], name="one_attachment_per_place")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_picture(self) -> bool:
        return self.thumbnail is not None
