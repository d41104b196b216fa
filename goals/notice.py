"""What a user is told where they do not look, and the proof that they were (mission H10)."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.ids import new_id
from memory.models import OwnedQuerySet, Thread

OPEN = Q(seen_at=None, settled_at=None)


class NoticeKind(models.TextChoices):
    """Nothing else is ever told."""

    WAITING = "waiting", "waits for you"
    FAILED = "failed", "failed"
    FINISHED = "finished", "finished"


class NoticeQuerySet(OwnedQuerySet["Notice"]):
    def open(self) -> Self:
        """Those that their user has not seen, and that still hold."""
        return self.filter(OPEN)


class Notice(models.Model):
    """Of one subject there is one, however many look for it.

    thread: of the conversation that it belongs to. subject: the action or message that asks, the run that has failed or
    finished, or the step of a run that waits for its budget. run: that one, but of an action. said: in a line. at: when
    that came about. seen_at: its user has seen a page that shows it. settled_at: it does not wait any more.
    """

    LENGTH = 200

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notices", db_index=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=10, choices=NoticeKind)
    subject = models.UUIDField()
    run = models.UUIDField(null=True)
    said = models.CharField(max_length=LENGTH)
    at = models.DateTimeField()
    seen_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [models.UniqueConstraint(fields=["user", "kind", "subject"], name="one_notice_each")]
        indexes = [
            models.Index(fields=["user", "-created_at"]),
            models.Index(fields=["user", "at"], condition=OPEN, name="open_notices"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.said}"


class Channel(models.TextChoices):
    """In the order in which a notice climbs."""

    PUSH = "push", "push"
    MAIL = "mail", "mail"
    FEED = "feed", "feed"


class ReceiptState(models.TextChoices):
    """RESERVED: about to be sent. LATER: it was turned away for now, or nobody was reached, and is tried again.
    UNKNOWN: it may have arrived, so it is not sent again. SHOWN: the device has said so. GONE: there is no such device
    any more."""

    RESERVED = "reserved", "being sent"
    SENT = "sent", "sent"
    SHOWN = "shown", "shown"
    LATER = "later", "tried again later"
    REFUSED = "refused", "refused"
    FAILED = "failed", "failed"
    GONE = "gone", "device gone"
    UNKNOWN = "unknown", "not known whether it arrived"


class ReceiptQuerySet(OwnedQuerySet["Receipt"]):
    owner = "notice__user"


class Receipt(models.Model):
    """That a notice went a way, and what came of it: written before it is sent, so that it is never sent twice.

    device: of a push; it outlives its row. whom: the name of the device, or the address of the mail. detail: what went
    wrong. at: when it was last sent, the same for all that one message to a device tells of. next_at: of LATER, when it
    is tried again.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    notice = models.ForeignKey(Notice, models.CASCADE, related_name="receipts", db_index=False)
    channel = models.CharField(max_length=10, choices=Channel)
    device = models.UUIDField(null=True)
    whom = models.CharField(max_length=254, blank=True, default="")
    state = models.CharField(max_length=10, choices=ReceiptState, default=ReceiptState.RESERVED)
    detail = models.CharField(max_length=300, blank=True, default="")
    tries = models.PositiveIntegerField(default=1)
    next_at = models.DateTimeField(null=True)
    at = models.DateTimeField()
    created_at = models.DateTimeField()

    objects = ReceiptQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["notice", "channel", "device"], name="one_receipt_each", nulls_distinct=False
            ),
        ]
        indexes = [models.Index(fields=["at"], condition=Q(state=ReceiptState.RESERVED), name="reserved_receipts")]

    def __str__(self) -> str:
        return f"{self.channel} {self.whom}: {self.state}"


class Glance(models.Model):
    """When a user last looked at a place: a page of `goals.glances`, or the conversation with that thread's id."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="glances", db_index=False)
    place = models.CharField(max_length=36)
    at = models.DateTimeField()

    objects = OwnedQuerySet["Glance"].as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "place"], name="one_glance_per_place")]

    def __str__(self) -> str:
        return f"{self.place} at {self.at}"


class NoticeChoice(models.Model):
    """Which kinds a user wants to be told of, and whether by mail. Who has none gets all.

    proof_asked_at: when a mail asked whether the address is theirs (`goals.mail_proof`).
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+")
    waiting = models.BooleanField(default=True)
    failed = models.BooleanField(default=True)
    finished = models.BooleanField(default=True)
    mail = models.BooleanField(default=True)
    proof_asked_at = models.DateTimeField(null=True)

    objects = OwnedQuerySet["NoticeChoice"].as_manager()

    def __str__(self) -> str:
        return ", ".join(self.kinds())

    def kinds(self) -> list[str]:
        return [kind for kind in NoticeKind.values if getattr(self, kind)]


def choice_of(user: User) -> NoticeChoice:
    """What a user wants to be told of."""
    return NoticeChoice.objects.for_user(user).first() or NoticeChoice(user=user)
