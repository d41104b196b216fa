"""The browsers that show notices also when no page of ours is open."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from agents.models import DeviceToken
from memory.ids import new_id
from memory.models import OwnedQuerySet


class PushDeviceQuerySet(OwnedQuerySet["PushDevice"]):
    def lost(self) -> Self:
        """Those that are not reached any more, until they tell of another subscription."""
        return self.filter(sealed="")


class PushDevice(models.Model):
    """A subscription to a browser's push service (RFC 8030). Whoever knows its address and keys can write to the
    browser, so they are encrypted (`memory.secrets`).

    digest: of the address, of which there is one in all. browser: by its cookie (`goals.looks`), which signs out with
    it. token: of the device that has registered it over the API, which signs out with it. sealed: empty when the push
    service knows no such subscription any more.
    """

    NAME_LENGTH = 100

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="push_devices")
    token = models.ForeignKey(DeviceToken, models.CASCADE, null=True, related_name="+")
    browser = models.CharField(max_length=64, blank=True, default="")
    name = models.CharField(max_length=NAME_LENGTH)
    digest = models.BinaryField(max_length=32, unique=True)
    sealed = models.TextField(help_text="goals.push.Subscription as JSON, encrypted")
    created_at = models.DateTimeField(db_default=Now())

    objects = PushDeviceQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_lost(self) -> bool:
        return not self.sealed
