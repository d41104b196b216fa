"""When the assistant writes the feed: at its hour; later that day when its model was away then; and when its user wants
it now (mission A13).

Each try is a run of its own, begun under the lock of the assistant's thread, while nothing is live there. The
conversation holds one turn for a feed, that of its last try; the runs keep the others.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID, uuid5

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.agentable import FEED
from agents.budgets.counting import zone_of
from agents.engine.posting import post
from agents.engine.waits import give_way
from agents.providers.errors import RETRYABLE
from goals import feeds
from goals.feed import Feed
from goals.feed_tools import WriteFeed
from goals.headline import headline
from goals.quiet import quiet_until
from goals.schedule import Result, Schedule, ScheduleKind
from goals.schedules import next_of
from memory.marks import mark
from memory.metadata import MessageMetadata
from memory.models import GAVE_WAY, AgentRun, RunQuerySet, RunStatus, Source, Thread, ThreadMessage, Trigger
from memory.pool import orm_connection
from tools.models import ActionStatus, AgentAction

PASS: Final = frozenset({*RETRYABLE, GAVE_WAY})
"""Reasons for which a run has ended without a feed, and another may not."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A feed that there was something to tell for, and that is not written.

    run: the last that was to write it; None: another is, as soon as the assistant is free. again_at: when it is tried
    again by itself, if it is. is_of_today: on its user's wall, and feeds are wanted: only then can it still be written.
    """

    feed: Feed
    run: AgentRun | None
    again_at: datetime | None
    is_of_today: bool

    @property
    def why(self) -> str:
        """In a sentence; empty when the run had something else to do."""
        run = self.run
        if run is None or run.reason == GAVE_WAY or _is_joined(run):
            return ""
        if run.status == RunStatus.SUCCEEDED:
            return _("A feed needs a model that uses tools.")
        if run.status == RunStatus.CANCELLED:
            return _("It was stopped.")
        said = headline(run.error)[0]
        return f"{said}." if said and not said.endswith("…") else said


def unwritten(user: User) -> Unwritten | None:
    """The newest feed, unless it is written, is being written, or was undone."""
    feed = Feed.objects.for_user(user).first()
    if feed is None or feed.written_at:
        return None
    last = _last_run(feed)
    if last is None or last.is_live or _was_undone(feed):
        return None
    schedule = Schedule.objects.for_user(user).filter(kind=ScheduleKind.FEED, paused=False).first()
    if schedule is None:
        return None
    if feed.day != _day(user.pk, timezone.now()):
        return Unwritten(feed, last, None, is_of_today=False)
    at = schedule.next_at if _may_pass(last) and _pause(feed) else None
    again_at = at if at and _day(user.pk, at) == feed.day else None
    return Unwritten(feed, last if feed.run else None, again_at, is_of_today=True)


def is_being_written(user: User) -> bool:
    feed = Feed.objects.for_user(user).first()
    last = _last_run(feed) if feed else None
    return bool(feed and feed.written_at is None and (feed.run is None or (last and last.is_live)))


def at_its_hour(schedule: Schedule, came: datetime) -> Result | None:
    """Take the day and hand its feed over. An assistant that is at work does that first. One that waits for its user's
    word, which may take days, gives way when there is something to tell. None: not now."""
    thread = schedule.thread
    if _is_busy(thread):
        return None
    with transaction.atomic():
        feed = feeds.begin(thread, came)
        if feed is None:
            return Result.UNCHANGED
        if thread.live_run is not None or not _hand_over(schedule, feed, feeds.material(feed)):
            transaction.set_rollback(True)  # the day is not taken
    give_way(thread)
    return Result.WOKEN if feed.run else None


def next_look(schedule: Schedule, now: datetime) -> datetime:
    """The feed's next hour; before that, what has become of today's is looked at."""
    feed = _of_today(schedule, now)
    pause = _pause(feed) if feed else None
    hour = next_of(schedule, now)
    return min(hour, now + pause) if pause else hour


def again(schedule: Schedule, now: datetime) -> bool:
    """Between two hours: try today's feed again, if it is missing and that makes sense by now; returns whether it
    does. A try that cannot begin yet stays due."""
    feed = _of_today(schedule, now)
    at = _when_again(schedule, feed, now) if feed else next_of(schedule, now)
    if feed is None or at > now:
        begins = False
    elif _is_free(schedule.thread) and _try_again(schedule, feed):
        begins, at = True, next_look(schedule, now)
    else:
        return False
    schedule.next_at = at
    schedule.save(update_fields=["next_at", "last_run"])
    return begins


def try_now(user: User) -> bool:
    """Have today's missing feed written now, or as soon as the assistant is free; once, however often it is asked for.
    False: it is not missing, or not today's."""
    now = timezone.now()
    with transaction.atomic():
        mine = Schedule.objects.for_user(user).filter(kind=ScheduleKind.FEED, paused=False)
        list(Thread.objects.select_for_update(no_key=True).filter(pk__in=mine.values("thread")))  # the one order
        schedule, missing = mine.select_for_update().first(), unwritten(user)
        if schedule is None or missing is None or not missing.is_of_today:
            return False
        Feed.objects.filter(pk=missing.feed.pk).update(run=None)
        schedule.next_at = now
        schedule.save(update_fields=["next_at"])
        again(schedule, now)
    return True


def _when_again(schedule: Schedule, feed: Feed, now: datetime) -> datetime:
    """When a feed is tried again, `now` at the earliest; or when there is another look at it."""
    if feed.run is None:  # its user wants it
        return now
    last, pause, hour = _last_run(feed), _pause(feed), next_of(schedule, now)
    if last is None or pause is None or not (last.is_live or _may_pass(last)):
        return hour
    if last.is_live and last.status != RunStatus.WAITING_APPROVAL and last.reason != GAVE_WAY:
        return min(hour, now + pause)
    return min(hour, quiet_until(schedule.user_id, now) or now)


def _try_again(schedule: Schedule, feed: Feed) -> bool:
    """Hand the same material over once more, in the place of what the last try has left in the conversation, as far as
    nobody has joined that."""
    tries = ThreadMessage.objects.filter(run__in=_runs(feed))
    joined = tries.filter(source=Source.USER).values("run")
    told = ThreadMessage.objects.filter(thread=feed.thread_id, client_message_id=_key(schedule, feed)).first()
    with transaction.atomic():
        tries.filter(source=Source.ERROR).exclude(run__in=joined).delete()
        if told:
            told.delete()
        words, trigger = told.content if told else feeds.material(feed), Trigger.SCHEDULE if feed.run else Trigger.RETRY
        if done := _hand_over(schedule, feed, words, trigger, told.pk if told else None):
            return done
        transaction.set_rollback(True)
    return False


def _hand_over(
    schedule: Schedule, feed: Feed, words: str, trigger: Trigger = Trigger.SCHEDULE, message_id: UUID | None = None
) -> bool:
    """False: too many runs of its user are queued."""
    mark(feed.thread_id, feed.sources, orm_connection())  # its user may have vouched for them since
    posted = post(
        schedule.thread,
        words,
        source=Source.AGENT,
        trigger=trigger,
        context_type=FEED,
        metadata=MessageMetadata(schedule=schedule.pk, feed=feed.pk),
        client_id=_key(schedule, feed),
        most=settings.WAYMARK_MAX_QUEUED_PER_USER,
        most_waiting=settings.WAYMARK_MAX_WAITING_MESSAGES,
        inside=True,
        message_id=message_id,
    )
    if posted is None:
        return False
    schedule.last_run = feed.run = posted.run_id
    feed.save(update_fields=["run"])
    return True


def _is_busy(thread: Thread) -> bool:
    return AgentRun.objects.live().filter(thread=thread).exclude(status=RunStatus.WAITING_APPROVAL).exists()


def _is_free(thread: Thread) -> bool:
    """Whether nothing is live there; what waits for its user's word gives way, and is gone by the next look."""
    give_way(thread)
    return thread.live_run is None


def _of_today(schedule: Schedule, now: datetime) -> Feed | None:
    """The feed of this day that is missing, if it is."""
    begun = Feed.objects.filter(user=schedule.user_id, day=_day(schedule.user_id, now), written_at=None)
    feed = begun.first()
    return None if feed is None or _was_undone(feed) else feed


def _was_undone(feed: Feed) -> bool:
    done = AgentAction.objects.filter(run__in=_runs(feed), tool=WriteFeed.name, status=ActionStatus.DONE)
    return done.exists()


def _may_pass(run: AgentRun) -> bool:
    """Whether another run may do what this one has not: it could not, or it answered somebody instead."""
    return run.reason in PASS or (run.status == RunStatus.SUCCEEDED and _is_joined(run))


def _is_joined(run: AgentRun) -> bool:
    """Whether its user has said something that it took up."""
    return ThreadMessage.objects.filter(run=run, source=Source.USER).exists()


def _runs(feed: Feed) -> RunQuerySet:
    """The tries at it."""
    tries = AgentRun.objects.filter(thread=feed.thread_id, context_type=FEED, created_at__gte=feed.created_at)
    return tries.order_by("created_at")


def _last_run(feed: Feed) -> AgentRun | None:
    return _runs(feed).last()


def _pause(feed: Feed) -> timedelta | None:
    """After the last try that the clock began; None: it begins no other."""
    tries, hours = _runs(feed).filter(trigger=Trigger.SCHEDULE).count(), settings.WAYMARK_FEED_RETRY_HOURS
    return timedelta(hours=hours[tries - 1]) if 0 < tries <= len(hours) else None


def _day(user_id: int, at: datetime) -> date:
    return at.astimezone(zone_of(user_id)).date()


def _key(schedule: Schedule, feed: Feed) -> UUID:
    """By which the conversation takes its material once."""
    return uuid5(schedule.pk, feed.day.isoformat())
