"""The last way of a notice: the next feed names what its user has not seen in spite of everything (mission H10)."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef
from django.utils import timezone

from goals.notice import Channel, Notice, Receipt, ReceiptQuerySet, ReceiptState
from goals.notice_words import title
from goals.noticing import settle


def hand_to_feed(user: User) -> None:
    """Reserve, for the feed that is begun, what had its time on the other ways and was named by none before."""
    settle(user)
    now = timezone.now()
    told = Receipt.objects.filter(notice=OuterRef("pk"), channel=Channel.FEED)
    late = now - timedelta(seconds=settings.WAYMARK_NOTICE_MAIL_SECONDS)
    for notice in Notice.objects.open().filter(~Exists(told), user=user, at__lte=late):
        fresh = {"state": ReceiptState.RESERVED, "at": now, "created_at": now}
        Receipt.objects.get_or_create(notice=notice, channel=Channel.FEED, device=None, defaults=fresh)


def handed_to_feed(user: User) -> list[str]:
    """What is reserved for a feed, in lines; also what was for one that was never written."""
    notices = Notice.objects.open().filter(receipts__in=_reserved(user)).select_related("thread").order_by("at")
    return [f"{title(notice)}. {notice.said}" for notice in notices]


def told_by_feed(user: User) -> None:
    """The feed is written."""
    _reserved(user).update(state=ReceiptState.SENT, at=timezone.now())


def _reserved(user: User) -> ReceiptQuerySet:
    return Receipt.objects.for_user(user).filter(channel=Channel.FEED, state=ReceiptState.RESERVED)
