"""What the clock does with notices: each goes to its user's browsers, then by mail, as long as they have not seen it;
the next feed names the rest (mission H10).

A receipt is reserved, and committed, before anything is sent. Whoever finds one leaves it alone, so nothing is sent
twice however many look at the clock, and what a dead worker had reserved counts as sent: nobody knows, and the next way
comes in its time.
"""

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from goals import notice_mail, push
from goals.mail_proof import is_proven
from goals.notice import OPEN, Channel, Notice, NoticeQuerySet, Receipt, ReceiptState, choice_of
from goals.noticing import find, forget, settle
from goals.push_device import PushDevice
from goals.quiet import quiet_until
from goals.sending import Outcome

log = structlog.get_logger(__name__)

LATEST: Final = timedelta(days=2)
"""What came about earlier is not begun to be sent: quiet hours are over by then, and the feed has named it."""
LOST: Final = timedelta(minutes=5)
"""After that whoever was about to send is dead. No way takes so long."""
APART: Final = 3
"""If more than that are due on one browser at once, one message tells of all of them: quiet hours are over, or there
was no way to it for a while."""
TRIES: Final = 11
PAUSE: Final = timedelta(minutes=1)
"""Before the second try; it doubles up to LONGEST_PAUSE, so the last one is made after some two hours. Longer if a push
service wants that."""
LONGEST_PAUSE: Final = timedelta(minutes=16)
LONGEST: Final = 2 * 3600.0
"""Seconds of such a wish."""
SECONDS: Final = 30.0
"""After which a tick begins to send nothing more: other things wait for the clock, too."""
SECONDS_EACH: Final = 5.0
"""The same for one user, whose push services may be as slow as they like (threat T16)."""


def deliver() -> None:
    """Find what is to be told, send what is due, forget what is long over. The rest is sent with the next ticks."""
    find()
    settle()
    forget()
    lost = Receipt.objects.filter(state=ReceiptState.RESERVED, at__lt=timezone.now() - LOST)
    lost.exclude(channel=Channel.FEED).update(state=ReceiptState.UNKNOWN)
    turn = _Turn(time.monotonic() + SECONDS)
    told = Notice.objects.open().filter(user=OuterRef("pk"), at__gt=timezone.now() - LATEST)
    for user in User.objects.filter(Exists(told), is_active=True).order_by("?"):
        turn.each = time.monotonic() + SECONDS_EACH
        if turn.is_over():
            return
        if quiet_until(user.pk, timezone.now()) is None:
            _deliver_to(user, turn)


@dataclass(slots=True)
class _Turn:
    """One tick's. until, each: for all, and for the user whose turn it is, by the monotonic clock. mail_is_down: its
    server does not answer, and is not waited for once for each user: others are pushed to meanwhile."""

    until: float
    each: float = math.inf
    mail_is_down: bool = False

    def is_over(self) -> bool:
        return time.monotonic() > min(self.until, self.each)


def _deliver_to(user: User, turn: _Turn) -> None:
    """What fails for one user is no reason to leave the others untold."""
    try:
        settle(user)
        _tell(user, turn)
    except DatabaseError:
        raise
    except Exception:
        log.exception("notices not delivered", user=user.pk)


@dataclass(frozen=True, slots=True)
class _Way:
    """One of a channel's; device: of a push."""

    channel: Channel
    whom: str
    device: UUID | None = None

    def untold(self, notices: NoticeQuerySet, now: datetime) -> NoticeQuerySet:
        """Those of `notices` that are to go this way now, for the first time or again."""
        mine = Receipt.objects.filter(notice=OuterRef("pk"), channel=self.channel, device=self.device)
        return notices.filter(~Exists(mine.exclude(state=ReceiptState.LATER, next_at__lte=now)))

    def rests(self, notices: NoticeQuerySet, now: datetime) -> bool:
        """Whether it is to be left alone for a while: it could not take one of them, and is not to be asked again yet.
        The others wait with that, and go together."""
        later = Receipt.objects.filter(channel=self.channel, device=self.device, state=ReceiptState.LATER)
        return notices.filter(Exists(later.filter(notice=OuterRef("pk"), next_at__gt=now))).exists()

    def reserve(self, notices: Collection[Notice], now: datetime) -> dict[Notice, Receipt]:
        """Without those that somebody else has reserved, and those that are not to be told any more. All get the same
        time."""
        fresh = {"whom": self.whom, "state": ReceiptState.RESERVED, "at": now, "created_at": now}
        mine = {}
        with transaction.atomic():
            free = Notice.objects.select_for_update(skip_locked=True).filter(OPEN)
            held = {*free.filter(pk__in=[each.pk for each in notices]).values_list("pk", flat=True)}
            for notice in notices:
                if notice.pk not in held:
                    continue
                receipt, made = Receipt.objects.get_or_create(
                    notice=notice, channel=self.channel, device=self.device, defaults=fresh
                )
                again = Receipt.objects.filter(pk=receipt.pk, state=ReceiptState.LATER, next_at__lte=now)
                if made or again.update(state=ReceiptState.RESERVED, at=now, tries=F("tries") + 1):
                    receipt.refresh_from_db()
                    mine[notice] = receipt
        return mine


def _tell(user: User, turn: _Turn) -> None:
    choice = choice_of(user)
    now = timezone.now()
    wanted = Notice.objects.open().filter(user=user, kind__in=choice.kinds(), at__gt=now - LATEST).order_by("at")
    unseen = wanted.filter(at__lte=now - timedelta(seconds=settings.WAYMARK_NOTICE_PUSH_SECONDS))
    for device in PushDevice.objects.for_user(user) if push.is_possible() else ():
        _push(device, unseen.filter(at__gte=device.created_at), turn)
    by_mail = settings.SENDS_MAIL and choice.mail and user.email and is_proven(user)
    if by_mail and not turn.mail_is_down and not turn.is_over():
        before = now - timedelta(seconds=settings.WAYMARK_NOTICE_MAIL_SECONDS)
        pushed = Receipt.objects.filter(notice=OuterRef("pk"), channel=Channel.PUSH, created_at__gt=before)
        turn.mail_is_down = _mail(user, wanted.filter(~Exists(pushed), at__lte=before))


def _push(known: PushDevice, notices: NoticeQuerySet, turn: _Turn) -> None:
    """A few one by one, many in one message, until its push service is busy or silent: the rest comes with the next
    ticks."""
    way, now = _Way(Channel.PUSH, known.name, known.pk), timezone.now()
    if way.rests(notices, now):
        return
    due = [*way.untold(notices, now).select_related("thread")]
    for together in [due] if len(due) > APART else [[each] for each in due]:
        if turn.is_over() or not _push_one(known, way, together):
            return


def _push_one(known: PushDevice, way: _Way, notices: Sequence[Notice]) -> bool:
    """Whether more can be sent to the device. Its row is held meanwhile, so that of many who look at the clock one has
    all of them, and read anew: it may have signed out, or renewed its subscription."""
    with transaction.atomic():
        device = PushDevice.objects.select_for_update(skip_locked=True).filter(pk=known.pk).first()
        if device is None or device.is_lost:
            return False
        mine = way.reserve(notices, timezone.now())
    if not mine:
        return True
    outcome = push.send(device, push.of_notices([*mine]))
    if outcome.state == ReceiptState.GONE and not push.lose(device):
        outcome = Outcome(ReceiptState.LATER, outcome.detail, is_down=True)  # it has a new subscription
    _note([*mine.values()], outcome)
    return not outcome.is_down and outcome.state != ReceiptState.GONE


def _mail(user: User, notices: NoticeQuerySet) -> bool:
    """All that is due in one. True: the mail server does not answer. Its user is held meanwhile, as the row of a device
    is: one clock has all of them."""
    way, now = _Way(Channel.MAIL, user.email), timezone.now()
    with transaction.atomic():
        held = User.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=user.pk, is_active=True)
        mine = way.reserve(way.untold(notices, now), now) if held else {}
    if not mine:
        return False
    outcome = notice_mail.send(user, [*mine])
    _note([*mine.values()], outcome)
    return outcome.is_down


def _note(receipts: Sequence[Receipt], outcome: Outcome) -> None:
    """What came of sending. A device that was quick may have said before that it has shown it."""
    if outcome.state != ReceiptState.SENT:
        first, detail = receipts[0], outcome.detail
        log.warning("notice not sent", channel=first.channel, state=outcome.state, detail=detail, receipt=str(first.pk))
    for receipt in receipts:
        state = outcome.state
        if state == ReceiptState.LATER and receipt.tries >= TRIES:
            state = ReceiptState.FAILED
        ours, theirs = PAUSE * 2 ** (receipt.tries - 1), timedelta(seconds=min(outcome.pause, LONGEST))
        pause = max(min(ours, LONGEST_PAUSE), theirs)
        next_at = receipt.at + pause if state == ReceiptState.LATER else None
        mine = Receipt.objects.filter(~Q(state=ReceiptState.SHOWN), pk=receipt.pk)
        mine.update(state=state, detail=outcome.detail[:300], next_at=next_at)
