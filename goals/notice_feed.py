"""The last way of a notice: the next feed names what its user has not seen in spite of everything (mission H10)."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef
from django.utils import timezone

from goals.notice import Channel, Notice, NoticeQuerySet, Receipt, ReceiptQuerySet, ReceiptState, choice_of
from goals.notice_words import title
from goals.noticing import settle


def hand_to_feed(user: User) -> set[UUID]:
    """Reserve, for the feed that is begun, what had its time on the other ways and was named by none before. Returns
    the threads of what is reserved: what their agents have read may be in its words (threat T10)."""
    settle(user)
    now = timezone.now()
    told = Receipt.objects.filter(notice=OuterRef("pk"), channel=Channel.FEED)
    late = now - timedelta(seconds=settings.WAYMARK_NOTICE_MAIL_SECONDS)
    wanted = Notice.objects.open().filter(user=user, kind__in=choice_of(user).kinds())
    for notice in wanted.filter(~Exists(told), at__lte=late):
        fresh = {"state": ReceiptState.RESERVED, "at": now, "created_at": now}
        Receipt.objects.get_or_create(notice=notice, channel=Channel.FEED, device=None, defaults=fresh)
    return {notice.thread_id for notice in _handed(user)}


def handed_to_feed(user: User) -> list[str]:
    """What is reserved for a feed, in lines; also what was for one that was never written."""
    return [f"{title(notice)}. {notice.said}" for notice in _handed(user)]


def told_by_feed(user: User) -> None:
    """The feed is written."""
    _reserved(user).update(state=ReceiptState.SENT, at=timezone.now())


def _handed(user: User) -> NoticeQuerySet:
    return Notice.objects.open().filter(receipts__in=_reserved(user)).select_related("thread").order_by("at")


def _reserved(user: User) -> ReceiptQuerySet:
    return Receipt.objects.for_user(user).filter(channel=Channel.FEED, state=ReceiptState.RESERVED)
