"""What the clock begins (mission A12)."""

from typing import Final, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from goals.when import LONGEST
from memory.ids import new_id
from memory.models import Author, OwnedQuerySet, Thread


class ScheduleKind(models.TextChoices):
    """RECURRING: by a rule, on the wall of its user. ONCE: at a moment. REVIEW: a while after its user last changed a
    note. HEARTBEAT: so that no goal goes silent. FEED: the assistant writes it, by a rule as well."""

    RECURRING = "recurring"
    ONCE = "once"
    REVIEW = "review"
    HEARTBEAT = "heartbeat"
    FEED = "feed"


SET_BY_SOMEBODY: Final = (ScheduleKind.RECURRING, ScheduleKind.ONCE)
"""People see them in their list; the others run by themselves."""


class Result(models.TextChoices):
    """What became of the last time: the agent was woken; nothing had changed, so it was not; or it had not yet taken up
    the time before."""

    WOKEN = "woken"
    UNCHANGED = "unchanged"
    BUSY = "busy"


class ScheduleQuerySet(OwnedQuerySet["Schedule"]):
    def set_by_somebody(self) -> Self:
        return self.filter(kind__in=SET_BY_SOMEBODY)


class Schedule(models.Model):
    """When an agent is woken by the clock, and what for.

    rule: five fields of cron; of RECURRING and FEED alone. intent: what it is to do then; blank: to look at how things
    stand.
    only_if_changed: a time at which nothing has changed since the agent's last run passes without a call of a model.
    next_at: None: it has come, or is paused; of FEED also when to look at what became of today's. last_slot: the time
    on its user's wall that came last, in ISO's form: no time comes twice. skipped_from: the first of the times that
    passed while nobody was there, before the last one.
    last_at, last_result, last_run: of the last time.
    """

    INTENT_LENGTH = 2_000

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="schedules", db_index=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="schedules")
    kind = models.CharField(max_length=20, choices=ScheduleKind)
    author = models.CharField(max_length=10, choices=Author, default=Author.USER)
    rule = models.CharField(max_length=LONGEST, blank=True, default="")
    intent = models.TextField(blank=True, default="")
    sources = models.JSONField(
        default=list, blank=True, db_default=[], help_text="Whose texts its writer had read (memory.marks)"
    )
    only_if_changed = models.BooleanField(default=False)
    paused = models.BooleanField(default=False)
    next_at = models.DateTimeField(null=True)
    last_slot = models.CharField(max_length=30, blank=True, default="")
    last_at = models.DateTimeField(null=True)
    last_result = models.CharField(max_length=20, choices=Result, blank=True, default="")
    last_run = models.UUIDField(null=True)
    skipped_from = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [
            models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="due_schedules"),
            models.Index(fields=["user", "-created_at"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "kind"],
                condition=models.Q(kind__in=["review", "heartbeat", "feed"]),
                name="one_of_its_kind",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.rule or self.next_at}"
