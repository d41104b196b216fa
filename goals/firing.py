"""What the clock does: whoever's time has come is woken (mission A12, cases SCH-01 to SCH-04).

A time is taken and its message posted in one transaction, and the message carries an id made of the schedule and the
time: whoever dies on the way, and however many look at the clock, it comes once. What passed while nobody looked is
caught up once, with its last time. The times themselves are never counted up, so a clock that leaps does no harm.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid5

import structlog
from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from agents.agentable import CHECK_IN
from agents.budgets.counting import zone_of
from agents.engine.posting import post
from goals import feed_writing
from goals.change import has_changed, last_said
from goals.measuring import count_check_in
from goals.models import Goal
from goals.quiet import quiet_until
from goals.schedule import Result, Schedule, ScheduleKind
from goals.schedules import next_of, said
from goals.when import instant, latest
from memory.marks import mark
from memory.metadata import MessageMetadata
from memory.models import Author, Source, Thread, ThreadMessage, Trigger
from memory.pool import orm_connection
from tools.seen import ADDRESS

log = structlog.get_logger(__name__)

BATCH: Final = 200
KEPT: Final = timedelta(days=90)
"""What came once, with its result."""
ASTRAY: Final = timedelta(days=1)
"""A time that came this much later than now was brought by a clock that went wrong: it does not count."""

INTENTS: Final = {
    ScheduleKind.REVIEW: "The user has changed notes. Look at what that means for the goal.",
    ScheduleKind.HEARTBEAT: "It has been silent here for a while. Look at how the goal stands and what would help.",
}
STRATEGY: Final = (
    "Check-in after check-in has brought the goal no nearer to its target. Review the strategy: what stands in the "
    "way, and what would have to be done otherwise? Propose one change to the user."
)
LOOK: Final = "Look at how the goal stands."


def fire_due() -> int:
    """Wake whoever's time has come; returns how many times were taken. What cannot be woken now, because too much of
    its user's waits already, is tried again with the next tick. Users take turns, and where there is more than a batch
    those come by chance, so that nothing stands in anybody's way."""
    now = timezone.now()
    turn = Window(RowNumber(), partition_by=F("user"), order_by="next_at")
    due = Schedule.objects.filter(_is_due(now), paused=False, user__is_active=True).order_by(turn, "?")
    _forget(now)
    taken, full = 0, set[UUID]()
    for _next_at, pk, thread_id in sorted(due.values_list("next_at", "pk", "thread_id")[:BATCH]):
        if thread_id in full:
            continue
        came = _taken(pk, thread_id, now)
        taken += bool(came)
        if came is None:
            full.add(thread_id)
    return taken


def fire_now(schedule: Schedule) -> bool:
    """Wake its agent out of turn. False: too much of its user's waits already."""
    return _bring(schedule, timezone.now().isoformat()) is not None


def _forget(now: datetime) -> None:
    """What came once, long ago: an agent may set itself a time every day, and its page lists them all."""
    came = Schedule.objects.filter(kind=ScheduleKind.ONCE, next_at=None, last_at__lt=now - KEPT)
    with transaction.atomic():
        held = came.select_for_update(skip_locked=True).values_list("pk", flat=True)[:BATCH]
        Schedule.objects.filter(pk__in=[*held]).delete()


def _is_due(now: datetime) -> Q:
    return Q(next_at__lte=now) | Q(next_at__isnull=False, last_at__gt=now + ASTRAY)


def _taken(schedule_id: UUID, thread_id: UUID, now: datetime) -> bool | None:
    """Whether the time was taken; None: its agent cannot be woken now, for none of its times. Nobody is waited for: a
    conversation that is held for long must not keep the others from theirs."""
    try:
        with transaction.atomic():
            free = Thread.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=thread_id)
            if not free.exists():  # the one order of locks
                return None
            mine = Schedule.objects.select_for_update(skip_locked=True).filter(_is_due(now), pk=schedule_id)
            schedule = mine.filter(paused=False).first()
            return _take(schedule, now) if schedule else False
    except OperationalError:
        raise
    except Exception:
        log.exception("a schedule failed", schedule=str(schedule_id))
        return False


def _take(schedule: Schedule, now: datetime) -> bool | None:
    assert schedule.next_at is not None
    if schedule.last_at and schedule.last_at > now + ASTRAY:
        schedule.last_slot, schedule.last_at = "", None
        schedule.next_at = next_of(schedule, now) if schedule.rule else min(schedule.next_at, now)
        schedule.save()
        return False
    if not schedule.rule and (until := quiet_until(schedule.user_id, now)):
        schedule.next_at = until
        schedule.save()
        return False
    zone, came = zone_of(schedule.user_id), schedule.next_at
    is_feed = schedule.kind == ScheduleKind.FEED  # which is looked at between its times, too
    if schedule.rule:
        slot = latest(schedule.rule, zone, now)
        if slot.isoformat() <= schedule.last_slot:
            if is_feed:
                return feed_writing.again(schedule, now)
            # Its user has moved a moment ago.
            schedule.next_at = next_of(schedule, now)
            schedule.save(update_fields=["next_at"])
            return False
        came = instant(slot, zone)
        schedule.last_slot = slot.isoformat()
    result = _result(schedule, came)
    if result is None:
        return False if is_feed else None
    schedule.skipped_from = schedule.next_at if came > schedule.next_at and not is_feed else None
    schedule.last_at, schedule.last_result = now, result
    schedule.next_at = _next(schedule, now)
    schedule.save()
    return True


def _result(schedule: Schedule, came: datetime) -> Result | None:
    """Wake the agent if there is a reason to. None: it cannot be woken now."""
    if schedule.kind == ScheduleKind.FEED:
        return feed_writing.at_its_hour(schedule, came)
    if Goal.objects.filter(thread=schedule.thread_id).exclude(archived_at=None).exists():
        return Result.UNCHANGED
    if schedule.only_if_changed and not has_changed(schedule.thread_id):
        return Result.UNCHANGED
    unread = ThreadMessage.objects.filter(thread=schedule.thread_id, processed=False)
    if unread.filter(metadata__schedule=str(schedule.pk)).exists():
        return Result.BUSY
    looks = schedule.kind in (ScheduleKind.RECURRING, ScheduleKind.HEARTBEAT)
    with transaction.atomic():
        review = looks and count_check_in(schedule.thread_id)
        run_id = _bring(schedule, came.isoformat(), STRATEGY if review else "")
        if run_id is None:
            transaction.set_rollback(True)  # what was counted
            return None
    schedule.last_run = run_id
    return Result.WOKEN


def _bring(schedule: Schedule, time: str, more: str = "") -> UUID | None:
    """Hand over what is to be done, and more; returns the run that does it."""
    typed = ADDRESS.findall(schedule.intent) if schedule.author == Author.USER else []
    told = MessageMetadata(schedule=schedule.pk, schedule_title=said(schedule), addresses=tuple(typed))
    if schedule.sources:
        mark(schedule.thread_id, schedule.sources, orm_connection())
    words = f"{schedule.intent or INTENTS.get(ScheduleKind(schedule.kind), LOOK)}\n\n{more}".strip()
    return _hand_over(schedule, uuid5(schedule.pk, time), words, told)


def _hand_over(schedule: Schedule, message_id: UUID, words: str, told: MessageMetadata) -> UUID | None:
    with transaction.atomic():
        posted = post(
            schedule.thread,
            words,
            source=Source.AGENT,
            trigger=Trigger.SCHEDULE,
            context_type=CHECK_IN,
            metadata=told,
            client_id=message_id,
            most=settings.WAYMARK_MAX_QUEUED_PER_USER,
            most_waiting=settings.WAYMARK_MAX_WAITING_MESSAGES,
            inside=True,
        )
    if posted is not None:
        return posted.run_id
    before = ThreadMessage.objects.filter(thread=schedule.thread_id, client_message_id=message_id)
    return before.values_list("run_id", flat=True).first()


def _next(schedule: Schedule, now: datetime) -> datetime | None:
    if schedule.kind == ScheduleKind.FEED:
        return feed_writing.next_look(schedule, now)
    if schedule.rule:
        return next_of(schedule, now)
    return now + pause_of(schedule.thread_id, now) if schedule.kind == ScheduleKind.HEARTBEAT else None


def pause_of(thread_id: UUID, now: datetime) -> timedelta:
    """How long an agent may be silent: the longer its user has been, the longer (mission A12)."""
    silent = now - last_said(thread_id)
    lively, usual, quiet = settings.WAYMARK_HEARTBEAT_HOURS
    hours = lively if silent < timedelta(days=2) else usual if silent < timedelta(days=7) else quiet
    return timedelta(hours=hours)
