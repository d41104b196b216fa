"""Where a user left off on each of their devices (mission H11)."""

from django.conf import settings
from django.db import models

from memory.ids import new_id
from memory.models import OwnedQuerySet


class Look(models.Model):
    """device: a browser, by its cookie, or a DeviceToken. since: where the present sitting began; what came after it is
    new. seen: until when all was shown."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="looks", db_index=False)
    device = models.CharField(max_length=64)
    since = models.DateTimeField()
    seen = models.DateTimeField()

    objects = OwnedQuerySet["Look"].as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "device"], name="one_look_per_device")]

    def __str__(self) -> str:
        return f"{self.device} until {self.seen}"
