"""Goals that are measured (mission H1)."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from goals.figures import exact
from memory.ids import new_id
from memory.models import Author, OwnedQuerySet, Thread, ThreadMessage


class Target(models.Model):
    """What is to be reached until when.

    best: how near it has come so far (`goals.forecast.distance`). flat: how many check-ins in a row found it no nearer;
    at so many (WAYMARK_FLAT_CHECK_INS) the strategy is reviewed, once until there is progress again.
    """

    NAME_LENGTH, UNIT_LENGTH = 100, 20

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="targets")
    thread = models.OneToOneField(Thread, models.CASCADE, related_name="target")
    name = models.CharField(max_length=NAME_LENGTH)
    unit = models.CharField(max_length=UNIT_LENGTH, blank=True, default="")
    value = models.FloatField()
    deadline = models.DateField()
    best = models.FloatField(null=True)
    flat = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["Target"].as_manager()

    def __str__(self) -> str:
        return f"{self.name} {exact(self.value)} {self.unit}".strip()


class Measurement(models.Model):
    """A value on a day, and what shows it: words, and where it came up (`message` and `action`, as of a learning)."""

    NOTE_LENGTH = 500

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="measurements")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="measurements", db_index=False)
    value = models.FloatField()
    day = models.DateField()
    author = models.CharField(max_length=10, choices=Author, default=Author.USER)
    note = models.CharField(max_length=NOTE_LENGTH, blank=True, default="")
    sources = models.JSONField(default=list, blank=True, db_default=[])
    message = models.ForeignKey(ThreadMessage, models.SET_NULL, null=True, related_name="+")
    action = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["Measurement"].as_manager()

    class Meta:
        ordering = ["day", "created_at"]
        indexes = [models.Index(fields=["thread", "day"])]

    def __str__(self) -> str:
        return f"{exact(self.value)} on {self.day}"
