"""The feed: gathered without a model, written by the assistant, read, rated, dismissed, talked about (mission A13)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, time, timedelta
from functools import partial
from itertools import chain, islice
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.budgets.counting import zone_of
from agents.live.announce import posted
from agents.live.stream import publish
from agents.services import assistant_of
from goals.feed import Evidence, Fact, Feed, FeedItem, Rating
from goals.measuring import outlook, said as measured
from goals.models import Goal
from goals.notice_feed import hand_to_feed, handed_to_feed
from goals.schedule import Schedule, ScheduleKind
from goals.schedules import next_of
from goals.updates import Kind, Update, horizon, updates
from memory.marks import mark, merged
from memory.metadata import MessageMetadata
from memory.models import Source, Thread, ThreadMessage
from memory.news import tell
from memory.pool import orm_connection
from memory.text import clip
from tools.models import asked_of

USUAL: Final = time(7, 30)
LOOKS_BACK: Final = timedelta(days=7)
"""At most, when there was no feed for longer."""
FACTS: Final = 12
"""Of one goal."""
SAID: Final = 500
"""Characters of one fact."""
RATED: Final = 10
"""As many of those that the user wants more of, and less of, are told."""

_ORDER: Final = (Kind.ASKED, Kind.FAILURE, Kind.REPORT, Kind.ANSWER, Kind.DECIDED, Kind.CHANGE)


def begin_daily(user: User) -> None:
    """From now on the assistant writes a feed each day, unless that has been decided before."""
    thread = assistant_of(user).thread
    schedule = Schedule(user=user, thread=thread, kind=ScheduleKind.FEED, rule=_rule(USUAL))
    Schedule.objects.get_or_create(
        thread=thread,
        kind=ScheduleKind.FEED,
        defaults={"user": user, "rule": schedule.rule, "next_at": next_of(schedule, timezone.now())},
    )


def hour_of(user: User) -> time | None:
    """When the feed is written, on the user's wall; None: never."""
    schedule = Schedule.objects.for_user(user).filter(kind=ScheduleKind.FEED).first()
    if schedule is None or schedule.paused:
        return None
    minute, hour = schedule.rule.split()[:2]
    return time(int(hour), int(minute))


def set_hour(user: User, at: time | None) -> None:
    """None: no feed is written any more."""
    mine = Schedule.objects.for_user(user).filter(kind=ScheduleKind.FEED)
    if at is None:
        mine.update(paused=True)
        return
    begin_daily(user)
    schedule = mine.get()
    if schedule.paused or schedule.rule != _rule(at):
        schedule.rule, schedule.paused = _rule(at), False
        schedule.next_at = next_of(schedule, timezone.now())
        schedule.save(update_fields=["rule", "paused", "next_at"])


def begin(thread: Thread, now: datetime) -> Feed | None:
    """Gather what there is to tell and take the day for it, within the transaction that hands it to the assistant.
    None: there is nothing, or the day has its feed; no model is called for that (mission H10)."""
    user, day = thread.user, now.astimezone(zone_of(thread.user_id)).date()
    if Feed.objects.filter(user=user, day=day).exists():
        return None
    until = horizon()
    # None of a clock that went ahead.
    earlier = Feed.objects.filter(user=user, written_at__isnull=False, until__lte=until)
    last = earlier.order_by("-until").first()
    since = max(last.until, until - LOOKS_BACK) if last else until - LOOKS_BACK
    threads = {goal.thread_id: goal for goal in _goals(user)}
    told = {fact["evidence"]["id"] for fact in last.facts} if last else set()
    found = [each for each in updates(user, since, threads) if each.thread in threads and str(each.id) not in told]
    if not found:
        return None
    sources = _sources(user, {each.thread for each in found} | hand_to_feed(user))
    mark(thread.pk, sources, orm_connection())
    return Feed.objects.create(
        user=user, thread=thread, day=day, since=since, until=until, facts=_facts(found), sources=sources
    )


def _sources(user: User, threads: Collection[UUID]) -> list[str]:
    """Whose texts are in what is told of these conversations, and in the wishes. Read after what is told."""
    marks = Thread.objects.filter(pk__in=threads).values_list("sources", flat=True)
    rated = (item.sources for items in _rated(user).values() for item in items)
    return merged(*marks, *rated)


def material(feed: Feed) -> str:
    """What the assistant is handed: the facts by goal, what waits, and what its user wants more and less of."""
    goals = {goal.thread_id: goal for goal in _goals(feed.user)}
    facts: dict[UUID, list[Fact]] = defaultdict(list)
    for given in feed.facts:
        fact = Fact.model_validate(given)
        facts[fact.thread].append(fact)
    parts = [f"Write the feed of {feed.day:%A}, {feed.day.day} {feed.day:%B}. What has come about since the last one:"]
    parts += [_of_goal(goals[thread], mine) for thread, mine in facts.items() if thread in goals]
    if waiting := asked_of(feed.user).count():
        parts.append(f"Calls that wait for the user's word, of all goals: {waiting}.")
    if unseen := handed_to_feed(feed.user):
        parts.append("\n".join(["Told to the user, who has not looked yet; say it again:", *unseen]))
    parts += _wishes(feed.user)
    return "\n\n".join(parts)


def open_feed(user_id: int) -> Feed | None:
    """The one that is to be written, locked."""
    mine = Feed.objects.select_for_update().filter(user=user_id, created_at__gte=horizon() - timedelta(days=2))
    last = mine.order_by("-created_at").first()
    return last if last and last.written_at is None else None


def newest(user: User) -> Feed | None:
    """The last one that was written."""
    return Feed.objects.for_user(user).filter(written_at__isnull=False).order_by("-day").first()


def dismiss(item: FeedItem) -> None:
    FeedItem.objects.filter(pk=item.pk, dismissed_at=None).update(dismissed_at=timezone.now())


def bring_back(item: FeedItem) -> None:
    """What was dismissed stands there again."""
    FeedItem.objects.filter(pk=item.pk).update(dismissed_at=None)


def rate(item: FeedItem, rating: Rating) -> None:
    """The next feeds have more, or less, of the kind."""
    FeedItem.objects.filter(pk=item.pk).update(rating=rating)


def discuss(item: FeedItem) -> ThreadMessage:
    """Put an item into the conversation that it is about, once, so that its user can answer it there; no model is
    called. What it may have from strangers marks that conversation. Returns it as it stands there."""
    return _put(item.thread, item.pk, f"**{item.title}**\n\n{item.body}".strip(), item.sources)


def discuss_brief(feed: Feed) -> ThreadMessage:
    """As `discuss`, the whole of a feed with its assistant."""
    return _put(feed.thread, feed.pk, feed.brief, feed.sources)


def _put(thread: Thread, key: UUID, text: str, sources: Sequence[str]) -> ThreadMessage:
    told = MessageMetadata(feed=key).stored()
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
        message, made = ThreadMessage.objects.get_or_create(
            thread=thread,
            client_message_id=key,
            defaults={"source": Source.AGENT, "content": f"*{_('From your feed:')}*\n\n{text}", "metadata": told},
        )
        if made:
            mark(thread.pk, sources, orm_connection())
            tell(thread.pk, f"The user wants to talk about this, from the feed of their assistant: {clip(text, 1_500)}")
            transaction.on_commit(partial(publish, thread.pk, thread.user_id, posted(message)))
    return message


def _goals(user: User) -> QuerySet[Goal]:
    return Goal.objects.for_user(user).current().select_related("thread")


def _facts(found: Sequence[Update]) -> list[Mapping[str, object]]:
    """Of each goal those that matter most, in the order of time; named e1, e2 …"""
    by_goal: dict[UUID, list[Update]] = defaultdict(list)
    for update in sorted(found, key=lambda each: _ORDER.index(each.kind)):
        by_goal[update.thread].append(update)
    chosen = chain.from_iterable(
        sorted(islice(mine, FACTS), key=lambda each: (each.at, each.id)) for mine in by_goal.values()
    )
    return [_fact(f"e{n}", update).model_dump(mode="json") for n, update in enumerate(chosen, 1)]


def _fact(name: str, update: Update) -> Fact:
    said = " ".join(f"{update.said}. {update.text}".split()) if update.text else update.said
    return Fact(
        name=name,
        kind=update.kind,
        thread=update.thread,
        evidence=Evidence(of=update.of, id=update.id, said=clip(said, SAID)),
    )


_WORDS: Final = {
    Kind.ASKED: "It asks:",
    Kind.FAILURE: "It failed:",
    Kind.REPORT: "A helper reported:",
    Kind.ANSWER: "It said:",
    Kind.DECIDED: "Decided:",
    Kind.CHANGE: "Done:",
}


def _of_goal(goal: Goal, facts: Sequence[Fact]) -> str:
    lines = [f"Goal: {goal.title}"]
    if stands := outlook(goal.thread_id):
        lines.append(f"Measured: {measured(stands)}")
    if goal.thread.sources:
        lines.append(f"Its agent has read texts of strangers: {', '.join(goal.thread.sources[:5])}")
    return "\n".join([*lines, *(f"[{fact.name}] {_WORDS[Kind(fact.kind)]} {fact.evidence.said}" for fact in facts)])


def _wishes(user: User) -> list[str]:
    words = {Rating.MORE: "The user wants more like:", Rating.LESS: "The user wants less like:"}
    return [
        f"{words[rating]} {'; '.join(item.title for item in items)}" for rating, items in _rated(user).items() if items
    ]


def _rated(user: User) -> Mapping[Rating, Sequence[FeedItem]]:
    """The last items that their user wants more of, and less."""
    rated = FeedItem.objects.for_user(user).order_by("-created_at")
    return {each: list(rated.filter(rating=each)[:RATED]) for each in (Rating.MORE, Rating.LESS)}


def _rule(at: time) -> str:
    return f"{at.minute} {at.hour} * * *"
