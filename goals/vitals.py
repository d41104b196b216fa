"""Whether what people count on by the clock comes: times, feeds, mails. For staff and for metrics."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.utils import timezone

from agents.vitals import Part
from goals.feed import Feed
from goals.notice import Channel, Receipt, ReceiptState
from goals.schedule import Schedule
from memory.ids import least_id

LATE_TICKS: Final = 5
"""A schedule that so many ticks have not taken is overdue."""
WRITTEN_WITHIN: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)


def parts() -> Iterator[Part]:
    """What `agents.vitals` tells beside its own."""
    overdue, unwritten = schedules_overdue(), feeds_unwritten()
    written = Feed.objects.filter(written_at__gt=timezone.now() - DAY).count()
    yield Part("Schedules", not overdue, f"{overdue} overdue" if overdue else "none overdue")
    if unwritten:  # one alone may be its user's model
        text = f"{unwritten} of the last day begun and not written, {written} written; their runs say why"
        yield Part("Feeds", written > 0, text)
    if settings.SENDS_MAIL:
        yield _mail()


def schedules_overdue() -> int:
    late = timezone.now() - LATE_TICKS * timedelta(seconds=settings.WAYMARK_TICK_SECONDS)
    return Schedule.objects.filter(next_at__lt=late, paused=False, user__is_active=True).count()


def feeds_unwritten() -> int:
    """Of the last day: their run has failed, or ended without writing."""
    now = timezone.now()
    return Feed.objects.filter(created_at__range=(now - DAY, now - WRITTEN_WITHIN), written_at=None).count()


def _mail() -> Part:
    """By the last that was tried. An address that is refused says nothing of the server."""
    tried = Receipt.objects.filter(pk__gte=least_id(timezone.now() - DAY), channel=Channel.MAIL)
    last = tried.exclude(state__in=[ReceiptState.RESERVED, ReceiptState.REFUSED]).order_by("-at").first()
    if last is None:
        return Part("Mail", True, "no notice was due in the last day")
    is_well = last.state == ReceiptState.SENT
    return Part("Mail", is_well, "the last notice was sent" if is_well else f"the last notice was not: {last.detail}")
