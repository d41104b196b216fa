"""A month of five people, twenty goals and four time zones, over three changes of the clocks, with workers that die in
the middle of it: every check-in, follow-up and feed comes exactly once, and a week without news costs nothing (missions
A12, A13 and H10, cases SCH-01 to SCH-04).

The clock stands where the month says. PostgreSQL's own goes on, so what an agent knows is compared by that.
"""

import random
import signal
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from agents import services
from agents.engine import crashpoints, jobs, sweeper
from agents.services import assistant_of
from goals import firing, schedules
from goals.feed import Feed, FeedItem
from goals.models import Goal, Schedule, ScheduleKind
from goals.preferences import save_profile
from goals.services import create_goal
from memory import notes
from memory.models import AgentRun, RunStatus, Source, ThreadMessage
from tests.factories import UserFactory, think_with
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer

type Time = tuple[str, int, int, Collection[int]]

START = datetime(2027, 3, 8, tzinfo=UTC)
QUIET_FROM = datetime(2027, 4, 8, tzinfo=UTC)
END = datetime(2027, 4, 15, tzinfo=UTC)
TICK = timedelta(minutes=10)

# New York leaps on 14 March, Berlin on 28 March; Auckland goes back on 4 April; Kolkata never does either.
ZONES = ("America/New_York", "Europe/Berlin", "Pacific/Auckland", "Asia/Kolkata", "Europe/Berlin")
# In words, as hour, minute and the weekdays (0 is Monday) on which it comes; 02:30 lies where clocks change.
TIMES: tuple[Time, ...] = (
    ("every weekday 8:00", 8, 0, range(5)),
    ("every day 2:30", 2, 30, range(7)),
    ("every Monday and Thursday 18:30", 18, 30, (0, 3)),
    ("every Sunday 1:00", 1, 0, (6,)),
)
AWAY = Status(429, {"retry-after": "7200"})
POINTS = ("D1.after", "D4.after", "D5.before", "D5.after", "D8.before", "D8.after")


class Killed(BaseException):
    """A worker dies where it stands."""


@dataclass
class Month:
    """What happens in it. rung: whom a worker is to look after. clock: the one on the wall of everybody. away: how many
    feeds the model was not there for."""

    rung: list[UUID]
    chance: random.Random
    clock: list[datetime]
    goals: list[Goal] = field(default_factory=list)
    follow_ups: int = 0
    notes_changed: int = 0
    deaths: int = 0
    away: int = 0

    def work(self) -> None:
        """Until nothing is left to do; now and then the worker dies, and another finds what it has left."""
        while self.rung:
            run_id = self.rung.pop(0)
            if self.chance.random() < 0.08:
                crashpoints.arm(self.chance.choice(POINTS))
            try:
                jobs.run(str(run_id))
            except Killed:
                self.deaths += 1
                past = Now() - timedelta(hours=1)
                AgentRun.objects.filter(pk=run_id, status=RunStatus.RUNNING).update(lease_until=past, due_at=past)
                AgentRun.objects.filter(pk=run_id, status=RunStatus.QUEUED).update(due_at=past, created_at=past)
                sweeper.sweep()
            finally:
                crashpoints.arm("")

    def model(self, request: Request) -> Reply | Status:
        is_feed = "<feed>" in request.last_user_text and not request.results
        if is_feed and self.clock[0] < QUIET_FROM and self.chance.random() < 0.15:
            self.away += 1
            return AWAY
        return mind(request)

    def happens(self) -> None:
        """People write to their agents, and change notes, by day and by night."""
        if self.chance.random() < 0.06:
            goal = self.chance.choice(self.goals)
            later = self.chance.random() < 0.3
            self.follow_ups += later
            services.send_message(goal.thread, "Ask me later how it went." if later else "How does it stand?")
        if self.chance.random() < 0.01:
            goal = self.chance.choice(self.goals)
            notes.create_note(goal.thread, f"Note {self.notes_changed}", "Something.")
            schedules.note_changed(goal.thread)
            self.notes_changed += 1


@pytest.fixture
def month(transactional_db: None, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Month]:
    clock = [START]
    monkeypatch.setattr(timezone, "now", lambda: clock[0])
    monkeypatch.setattr(signal, "pthread_kill", _die)
    llm.keep_log = False
    month = Month(rung, random.Random(20270308), clock)
    llm.always(month.model)
    for zone in ZONES:
        user = UserFactory()
        think_with(user, llm.url, "key-of-the-test")
        save_profile(assistant_of(user), "Ada", zone)
        for number, (words, *_) in enumerate(TIMES):
            goal = create_goal(user, f"Goal {number} in {zone}")
            schedules.add(goal.thread, words, "Look in.", only_if_changed=number == 2)
            month.goals.append(goal)
    yield month
    crashpoints.arm("")


def _die(*_: object) -> None:
    raise Killed


def mind(request: Request) -> Reply:
    """What every agent thinks. A call that the death of a worker has undone is made again."""
    said, result = request.last_user_text, str(request.messages[-1].get("content"))
    is_done = request.results > 0 and "The worker ended" not in result
    if is_done:
        return Reply(text="" if "<feed>" in said or "<check_in>" in said else "I will ask.")
    if "<feed>" in said:
        item = {"kind": "progress", "title": "Something has come about", "evidence": ["e1"]}
        return Reply(calls=[("write_feed", {"brief": "Some goals have moved.", "items": [item]})])
    if "<check_in>Ask how it went." in said:
        return Reply(calls=[("send_message", {"text": "How did it go?"})])
    if "<check_in>" in said:
        return Reply(text="")
    if "Ask me later" in said:
        return Reply(calls=[("schedule_follow_up", {"hours": 30, "intent": "Ask how it went."})])
    return Reply(text="It stands well.")


def test_a_month_comes_exactly_once(month: Month, llm: LLMServer) -> None:
    while month.clock[0] < QUIET_FROM:
        month.happens()
        month.work()
        firing.fire_due()
        if month.chance.random() < 0.1:
            firing.fire_due()  # another one that looks at the same clock
        month.work()
        month.clock[0] += TICK
    assert month.deaths > 20

    came = Counter(
        ThreadMessage.objects.filter(metadata__has_key="schedule").values_list("metadata__schedule", flat=True)
    )
    for goal, (zone, (words, hour, minute, weekdays)) in zip(month.goals, _owned(), strict=True):
        (schedule,) = Schedule.objects.filter(thread=goal.thread, kind=ScheduleKind.RECURRING)
        due = slots(ZoneInfo(zone), hour, minute, weekdays)
        if schedule.only_if_changed:
            assert came[str(schedule.pk)] <= len(due), goal
        else:
            assert came[str(schedule.pk)] == len(due), (goal, words)
    assert_follow_ups_came_once(month)
    assert_feeds_came_once(month)
    others = AgentRun.objects.exclude(status=RunStatus.SUCCEEDED).exclude(context_type="feed_generation")
    assert list(others.values_list("status", "reason", "error", "trigger", "recoveries")) == []

    a_week_without_news(month, llm)


def assert_follow_ups_came_once(month: Month) -> None:
    """But for those that are still to come."""
    once = Schedule.objects.filter(kind=ScheduleKind.ONCE)
    assert once.count() == month.follow_ups
    asked = ThreadMessage.objects.filter(content="How did it go?", source=Source.AGENT)
    assert asked.count() == once.filter(next_at=None).count() > 10
    assert not once.filter(next_at__lt=month.clock[0] - timedelta(minutes=30)).exists()


def assert_feeds_came_once(month: Month) -> None:
    """One for each day on which there was something to tell, each written by one run: the first, or when the model was
    away one that came hours later. One that it was away for four times is told by the next."""
    feeds = [feed for feed in Feed.objects.all() if feed.written_at]
    assert len(feeds) > 60
    assert all(feed.brief for feed in feeds)
    assert len({(feed.user_id, feed.day) for feed in feeds}) == len(feeds)
    runs = AgentRun.objects.filter(context_type="feed_generation")
    assert {feed.run for feed in feeds} == set(runs.filter(status=RunStatus.SUCCEEDED).values_list("pk", flat=True))
    assert FeedItem.objects.count() == len(feeds)
    told = Counter(fact["evidence"]["id"] for feed in feeds for fact in feed.facts)
    assert told.most_common(1)[0][1] == 1  # nothing is told twice
    away = runs.exclude(status=RunStatus.SUCCEEDED).values_list("status", "reason")
    assert list(away) == [(RunStatus.FAILED, "rate_limited")] * month.away
    assert month.away - 4 * Feed.objects.filter(written_at=None).count() > 10
    handed = ThreadMessage.objects.filter(metadata__has_key="feed").values_list("metadata__feed", flat=True)
    assert set(Counter(handed).values()) == {1}


def a_week_without_news(month: Month, llm: LLMServer) -> None:
    """What people have set to come in any case is paused; all else finds out by itself that nothing has changed."""
    Schedule.objects.filter(kind=ScheduleKind.RECURRING, only_if_changed=False).update(paused=True)
    Schedule.objects.filter(kind=ScheduleKind.ONCE).update(paused=True)
    month.clock[0] += timedelta(days=1)  # what was changed last is looked at, and told
    firing.fire_due()
    month.work()
    month.clock[0] += timedelta(days=1)
    firing.fire_due()
    month.work()
    messages, runs = ThreadMessage.objects.count(), AgentRun.objects.count()
    until = month.clock[0] + timedelta(days=7)
    looked = Schedule.objects.filter(last_result="unchanged").count()
    while month.clock[0] < until:
        firing.fire_due()
        month.clock[0] += TICK
    assert (ThreadMessage.objects.count(), AgentRun.objects.count()) == (messages, runs)
    assert month.rung == []
    assert Schedule.objects.filter(last_result="unchanged").count() >= looked


def _owned() -> Iterator[tuple[str, Time]]:
    return ((zone, each) for zone in ZONES for each in TIMES)


def slots(zone: ZoneInfo, hour: int, minute: int, weekdays: Collection[int]) -> list[datetime]:
    """When a time comes within the month: once a day, the first of two, later where clocks leap over it."""
    days = (date(2027, 3, 7) + timedelta(days=n) for n in range(40))
    walls = [datetime.combine(day, time(hour, minute), zone) for day in days if day.weekday() in weekdays]
    return [wall for wall in walls if START < wall.astimezone(UTC) < QUIET_FROM]
