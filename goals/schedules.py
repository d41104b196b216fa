"""Schedules: every write that a face or a tool may ask for (mission A12)."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agents.agentable import Ahead
from agents.budgets.counting import zone_of
from agents.refusals import Refused
from goals import spoken_time, when
from goals.schedule import SET_BY_SOMEBODY, Schedule, ScheduleKind
from memory.hot import load_all
from memory.marks import names
from memory.models import Author, Thread
from memory.text import clean

MOST: Final = 50
"""Of one agent."""
FOLLOW_UPS: Final = 10
"""Those of them that it sets itself, to come once: whatever it has read, it neither wakes itself without end nor takes
all room."""
REVIEW_AFTER: Final = timedelta(minutes=15)
AHEAD: Final = "x.thread_id = %(thread)s AND x.next_at IS NOT NULL AND x.kind = ANY(%(kinds)s) ORDER BY x.next_at"


def add(thread: Thread, time: str, intent: str = "", *, only_if_changed: bool = False) -> Schedule:
    """What a user sets.

    Args:
        time: in words, such as "every weekday 8:00" or "in 3 days"; or a rule of cron.

    Raises:
        Refused: the time is not understood or has passed, the intent is too long, or there are too many.
    """
    schedule = understood(thread, time)
    schedule.only_if_changed = only_if_changed
    _set_intent(schedule, intent)
    return _added(schedule)


def understood(thread: Thread, time: str) -> Schedule:
    """What `add` would set, which is not saved.

    Raises:
        Refused: the time is not understood or has passed.
    """
    schedule = Schedule(user_id=thread.user_id, thread=thread)
    _set_time(schedule, time)
    return schedule


def follow_up(thread: Thread, at: datetime, intent: str, sources: Sequence[str] = ()) -> Schedule:
    """What an agent sets itself, once.

    Args:
        sources: whose texts it has read (`memory.marks`).

    Raises:
        Refused: the intent is too long, or there are too many.
    """
    schedule = Schedule(
        user_id=thread.user_id,
        thread=thread,
        kind=ScheduleKind.ONCE,
        author=Author.AGENT,
        next_at=at,
        sources=names(sources),
    )
    _set_intent(schedule, intent)
    return _added(schedule)


def recur(thread: Thread, time: str, intent: str, sources: Sequence[str] = ()) -> Schedule:
    """What an agent sets itself, again and again, when its user has asked for it.

    Args:
        time: as of `add`; one that recurs.
        sources: as of `follow_up`.

    Raises:
        Refused: as `add`, or it comes once.
    """
    schedule = understood(thread, time)
    if not schedule.rule:
        raise Refused("time", "This comes once; schedule_follow_up sets that.")
    schedule.author, schedule.sources = Author.AGENT, names(sources)
    _set_intent(schedule, intent)
    return _added(schedule)


def _added(schedule: Schedule) -> Schedule:
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=schedule.thread_id)
        mine = Schedule.objects.filter(thread=schedule.thread_id).set_by_somebody().exclude(next_at=None, paused=False)
        if mine.count() >= MOST:
            raise Refused("too_many", _("An agent may have %(n)d times at most.") % {"n": MOST})
        follow_ups = mine.filter(author=Author.AGENT, kind=ScheduleKind.ONCE)
        if schedule.author == Author.AGENT and not schedule.rule and follow_ups.count() >= FOLLOW_UPS:
            raise Refused("too_many", f"You have {FOLLOW_UPS} follow-ups that are still to come. Drop one first.")
        if schedule.rule and mine.filter(rule=schedule.rule, intent=schedule.intent).exists():
            raise Refused("time", _("This time is set already."))
        schedule.save(force_insert=True)
    return schedule


def change(
    schedule: Schedule, *, time: str | None = None, intent: str | None = None, only_if_changed: bool | None = None
) -> None:
    """Raises: Refused, as `add`."""
    if intent is not None:
        _set_intent(schedule, intent)
    if only_if_changed is not None:
        schedule.only_if_changed = only_if_changed
    if time is not None:
        _set_time(schedule, time)
        schedule.paused = False
    schedule.save(update_fields=["kind", "rule", "next_at", "paused", "intent", "only_if_changed"])


def pause(schedule: Schedule) -> None:
    """Nothing comes until it is resumed. What is to come once is kept, too: its moment may pass."""
    Schedule.objects.filter(pk=schedule.pk).update(paused=True)


def resume(schedule: Schedule) -> None:
    """Times that passed meanwhile are not caught up; of what was to come once its moment is."""
    schedule.paused = False
    if schedule.rule:
        schedule.next_at = next_of(schedule, timezone.now())
    schedule.save(update_fields=["paused", "next_at"])


def remove(schedule: Schedule) -> None:
    schedule.delete()


def next_of(schedule: Schedule, now: datetime) -> datetime:
    """When a recurring one comes next."""
    zone = zone_of(schedule.user_id)
    last = datetime.fromisoformat(schedule.last_slot) if schedule.last_slot else None
    return when.instant(when.following(schedule.rule, zone, now, last), zone)


def rezone(user: User) -> None:
    """Its user's wall is elsewhere: what recurs comes by the new one, never twice at one time of it. Moments stay."""
    for schedule in Schedule.objects.for_user(user).exclude(rule="").filter(next_at__isnull=False):
        Schedule.objects.filter(pk=schedule.pk).update(next_at=next_of(schedule, timezone.now()))


def note_changed(thread: Thread) -> None:
    """The user has changed a note: its agent looks at it some minutes after the last change (debounced)."""
    at = timezone.now() + REVIEW_AFTER
    Schedule.objects.update_or_create(
        thread=thread,
        kind=ScheduleKind.REVIEW,
        defaults={"next_at": at},
        create_defaults={"next_at": at, "user_id": thread.user_id, "only_if_changed": True},
    )


def begin_to_beat(thread: Thread) -> None:
    """Of a new goal: its agent looks in now and then, however silent it is."""
    at = timezone.now() + timedelta(hours=settings.WAYMARK_HEARTBEAT_HOURS[0])
    Schedule.objects.create(
        thread=thread, user_id=thread.user_id, kind=ScheduleKind.HEARTBEAT, next_at=at, only_if_changed=True
    )


def ahead(thread_id: UUID) -> list[Ahead]:
    """What somebody has set for an agent and is still to come, now or once it is resumed."""
    return [
        Ahead(said(each), each.intent, each.pk if each.author == Author.AGENT else None, each.paused)
        for each in load_all(Schedule, AHEAD, {"thread": thread_id, "kinds": list(SET_BY_SOMEBODY)})
    ]


def said(schedule: Schedule) -> str:
    """When it comes, in words: "every weekday 08:00"; of what comes once the moment."""
    if schedule.rule:
        return spoken_time.said(schedule.rule)
    if schedule.kind == ScheduleKind.REVIEW:
        return _("after you changed a note")
    if schedule.kind == ScheduleKind.HEARTBEAT:
        return _("after a while without a word")
    return _("once, %(moment)s") % {"moment": moment_said(schedule)}


def typed(schedule: Schedule) -> str:
    """A recurring time as its user can type it in again; nothing for what comes once."""
    if not schedule.rule:
        return ""
    words, now = said(schedule), timezone.now().astimezone(zone_of(schedule.user_id))
    if when.parts(schedule.rule)[1]:
        words = _("%(time)s from %(day)s") % {"time": words, "day": date_format(next_of(schedule, now), "j F Y")}
    with suppress(when.Unclear):
        if spoken_time.rule_of(words, now) == schedule.rule:
            return words
    return schedule.rule


def moment_said(schedule: Schedule) -> str:
    """The moment of what comes, or came, once, on its user's wall."""
    moment = schedule.next_at or schedule.last_at
    return date_format(moment.astimezone(zone_of(schedule.user_id)), "D j M, H:i") if moment else ""


def vouched(thread_id: UUID) -> None:
    """Its user has looked at what its agent has read, and vouches for what it has set itself."""
    Schedule.objects.filter(thread=thread_id).update(sources=[])


def _set_time(schedule: Schedule, time: str) -> None:
    if len(time) > when.LONGEST:
        raise Refused("time", _("A time takes at most %(n)d characters.") % {"n": when.LONGEST})
    now = timezone.now().astimezone(zone_of(schedule.user_id))
    try:
        schedule.rule, schedule.kind = spoken_time.rule_of(time, now), ScheduleKind.RECURRING
    except when.Unclear as no_rule:
        try:
            schedule.rule, schedule.kind, schedule.next_at = "", ScheduleKind.ONCE, spoken_time.moment_of(time, now)
        except when.Unclear as no_moment:
            recurs = time.strip().lower().startswith(("every", "each", "fortnightly"))
            problem = no_rule if recurs else no_moment
            raise Refused("time", str(problem)) from None
    else:
        schedule.next_at = next_of(schedule, now)


def _set_intent(schedule: Schedule, intent: str) -> None:
    schedule.intent = clean(intent).strip()
    if len(schedule.intent) > Schedule.INTENT_LENGTH:
        most = Schedule.INTENT_LENGTH
        raise Refused("too_long", _("At most %(n)d characters say what it is to do.") % {"n": most})
