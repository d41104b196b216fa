"""What the clock begins, with a clock that stands where the test says (mission A12, cases SCH-01 to SCH-04)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agents.engine import bell
from agents.refusals import Refused
from agents.services import assistant_of
from goals import firing, schedules
from goals.models import Goal, Result, Schedule, ScheduleKind
from goals.preferences import save_profile
from goals.services import archive_goal
from memory import notes
from memory.models import AgentRun, ThreadMessage
from tests.factories import AgentActionFactory, AgentRunFactory, GoalFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

type Clock = Callable[[datetime], None]
START = datetime(2027, 3, 27, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clock; at first to START."""

    def stand_at(moment: datetime) -> None:
        monkeypatch.setattr(timezone, "now", lambda: moment)

    stand_at(START)
    return stand_at


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bell, "ring", lambda run_id: True)


@pytest.fixture
def goal(clock: Clock, goal: Goal) -> Goal:
    """Without a heartbeat, in Berlin."""
    Schedule.objects.all().delete()
    live_in(goal, "Europe/Berlin")
    return goal


def live_in(goal: Goal, zone: str) -> None:
    save_profile(assistant_of(goal.user), "Ada", zone)


def brought() -> list[str]:
    """What agents were told by the clock, in order."""
    told = ThreadMessage.objects.filter(metadata__has_key="schedule").order_by("position")
    return list(told.values_list("content", flat=True))


def read_all() -> None:
    """As a run would that takes up what waits."""
    ThreadMessage.objects.update(processed=True)
    AgentRun.objects.update(status="succeeded", finished_at=datetime.now(UTC))
    for schedule in Schedule.objects.select_related("thread"):
        type(schedule.thread).objects.filter(pk=schedule.thread_id).update(live_run=None, pending=0)


def step(clock: Clock, start: datetime, end: datetime, by: timedelta) -> list[datetime]:
    """Let time pass; returns when something was due."""
    came, now = [], start
    while now <= end:
        clock(now)
        if firing.fire_due():
            came.append(now)
            read_all()
        now += by
    return came


@pytest.mark.parametrize("by", [timedelta(minutes=10), timedelta(days=1)], ids=["step by step", "a day at once"])
def test_SCH_01_a_night_in_which_the_clocks_leap(by: timedelta, clock: Clock, goal: Goal) -> None:
    schedule = schedules.add(goal.thread, "every day 2:30")
    shown = [schedule.next_at]
    for day in (28, 29, 30):
        step(clock, datetime(2027, 3, day - 1, tzinfo=UTC), datetime(2027, 3, day, tzinfo=UTC), by)
        schedule.refresh_from_db()
        shown.append(schedule.next_at)
    assert [moment.day for moment in shown if moment] == [27, 28, 29, 30]
    assert shown[1] == datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    assert shown[2] == datetime(2027, 3, 29, 0, 30, tzinfo=UTC)
    assert len(brought()) == 3


def test_SCH_02_a_user_moves_to_another_zone(clock: Clock, goal: Goal) -> None:
    live_in(goal, "Etc/UTC")
    clock(datetime(2027, 1, 10, 1, tzinfo=UTC))
    daily, once = schedules.add(goal.thread, "every day 11:00"), schedules.add(goal.thread, "in 4 hours", "Call.")
    clock(datetime(2027, 1, 10, 2, tzinfo=UTC))
    live_in(goal, "Asia/Ho_Chi_Minh")
    daily.refresh_from_db()
    once.refresh_from_db()
    assert daily.next_at == datetime(2027, 1, 10, 4, tzinfo=UTC)
    assert once.next_at == datetime(2027, 1, 10, 5, tzinfo=UTC)
    begin, end = datetime(2027, 1, 10, 2, tzinfo=UTC), datetime(2027, 1, 11, 3, tzinfo=UTC)
    came = step(clock, begin, end, timedelta(minutes=30))
    assert came == [datetime(2027, 1, 10, 4, tzinfo=UTC), datetime(2027, 1, 10, 5, tzinfo=UTC)]
    daily.refresh_from_db()
    assert daily.skipped_from is None
    clock(datetime(2027, 1, 11, 3, 30, tzinfo=UTC))  # eleven had come on the 10th by the new wall
    live_in(goal, "Pacific/Honolulu")  # where it is the 10th, 17:30
    daily.refresh_from_db()
    assert daily.next_at == datetime(2027, 1, 11, 21, tzinfo=UTC)


def test_SCH_03_after_three_days_each_is_caught_up_once_and_little_by_little(
    clock: Clock, goal: Goal, settings: Settings
) -> None:
    settings.WAYMARK_MAX_QUEUED_PER_USER = 4
    settings.WAYMARK_MAX_WAITING_MESSAGES = 10
    clock(datetime(2027, 2, 1, tzinfo=UTC))
    for n in range(40):
        schedules.add(goal.thread, ("every hour", "every day 8:00", "every Tuesday 9:00")[n % 3], f"Task {n}")
    clock(datetime(2027, 2, 4, 0, 10, tzinfo=UTC))
    firing.fire_due()
    assert len(brought()) == 10  # no more wait for one agent
    for _tick in range(6):
        read_all()
        firing.fire_due()
    assert sorted(brought()) == sorted(f"Task {n}" for n in range(40))
    hourly = Schedule.objects.get(intent="Task 0")
    assert hourly.skipped_from == datetime(2027, 2, 1, 1, tzinfo=UTC)
    assert hourly.next_at == datetime(2027, 2, 4, 1, tzinfo=UTC)
    assert Schedule.objects.get(intent="Task 2").skipped_from is None


def test_times_of_one_user_that_cannot_come_keep_nobody_waiting(
    clock: Clock, goal: Goal, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WAYMARK_MAX_QUEUED_PER_USER = 1
    monkeypatch.setattr(firing, "BATCH", 5)
    other = GoalFactory.create(user=UserFactory.create())
    for thread in (other.thread, GoalFactory.create(user=other.user).thread):
        for n in range(6):
            schedules.add(thread, "in 1 minute", f"{n}")
    schedules.add(goal.thread, "in 2 minutes", "Mine")
    Schedule.objects.filter(kind=ScheduleKind.HEARTBEAT).delete()
    for minute in range(3, 6):
        clock(START + timedelta(minutes=minute))
        firing.fire_due()
    assert "Mine" in brought()
    tried: list[str] = []
    monkeypatch.setattr(firing, "BATCH", 100)
    monkeypatch.setattr(firing, "_bring", lambda schedule, *_: tried.append(schedule.intent))
    firing.fire_due()
    assert len(tried) == 1, "once for its agent, though six wait"


def test_SCH_03_b_a_crash_before_the_commit_loses_nothing_and_after_it_repeats_nothing(
    clock: Clock, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules.add(goal.thread, "every day 8:00", "Look.")
    clock(datetime(2027, 3, 27, 7, tzinfo=UTC))
    with monkeypatch.context() as patch:
        patch.setattr(Schedule, "save", lambda self, **_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            firing.fire_due()
    assert brought() == []
    assert firing.fire_due() == 1
    assert firing.fire_due() == 0
    Schedule.objects.update(next_at=datetime(2027, 3, 27, 7, tzinfo=UTC), last_slot="")  # as if that had been lost
    firing.fire_due()
    assert brought() == ["Look."]


def test_SCH_03_c_one_runs_and_one_waits_at_most(clock: Clock, goal: Goal) -> None:
    schedule = schedules.add(goal.thread, "every 5 minutes")
    goal.thread.live_run = AgentRunFactory(thread=goal.thread, status="running").pk
    goal.thread.save(update_fields=["live_run"])
    results = []
    for minute in range(5, 125, 5):
        clock(START + timedelta(minutes=minute))
        firing.fire_due()
        schedule.refresh_from_db()
        results.append(schedule.last_result)
    assert results == [Result.WOKEN, *[Result.BUSY] * 23]
    assert len(brought()) == 1


def test_SCH_04_the_clock_leaps(clock: Clock, goal: Goal) -> None:
    ten = datetime(2027, 3, 27, 10, tzinfo=UTC)
    clock(ten - timedelta(minutes=1))
    schedules.add(goal.thread, "every 5 minutes")
    minute = timedelta(minutes=1)
    assert step(clock, ten, ten, minute) == [ten]
    back = ten - timedelta(minutes=2, seconds=30)
    assert step(clock, back, ten + 5 * minute, minute / 2) == [ten + 5 * minute]
    far = datetime(2036, 1, 1, tzinfo=UTC)
    assert step(clock, far, far, minute) == [far]
    again = ten + 8 * minute
    assert step(clock, again, ten + 11 * minute, minute) == [ten + 10 * minute]


def test_every_second_week_comes_so_also_when_the_server_was_away(clock: Clock, goal: Goal) -> None:
    live_in(goal, "Europe/Berlin")
    clock(datetime(2027, 3, 1, tzinfo=UTC))
    schedules.add(goal.thread, "every other Monday 2:30 from 8 March")
    quarter = timedelta(hours=6)
    came = step(clock, datetime(2027, 3, 1, tzinfo=UTC), datetime(2027, 4, 21, tzinfo=UTC), quarter)
    assert [(each.month, each.day) for each in came] == [(3, 8), (3, 22), (4, 5), (4, 19)]
    late = datetime(2027, 6, 12, 12, tzinfo=UTC)  # after three more of them
    assert step(clock, late, datetime(2027, 6, 15, tzinfo=UTC), quarter) == [late, datetime(2027, 6, 14, 6, tzinfo=UTC)]
    assert len(brought()) == 6


def test_a_conversation_that_is_held_keeps_no_other_from_its_time(clock: Clock, goal: Goal) -> None:
    other = GoalFactory(user=goal.user)
    schedules.add(goal.thread, "every day 7:59", "Look.")
    schedules.add(other.thread, "every day 8:00", "Look there.")
    clock(datetime(2027, 3, 27, 7, tzinfo=UTC))
    with psycopg.connect(**connection.get_connection_params()) as somebody:
        somebody.execute("SELECT FROM memory_thread WHERE id = %s FOR NO KEY UPDATE", [goal.thread_id])
        firing.fire_due()
        assert brought() == ["Look there."]
    firing.fire_due()
    assert sorted(brought()) == ["Look there.", "Look."]


def test_those_that_cannot_be_woken_stand_in_nobodys_way(
    clock: Clock, goal: Goal, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WAYMARK_MAX_QUEUED_PER_USER = 1
    monkeypatch.setattr(firing, "BATCH", 2)
    for _ in range(4):
        schedules.add(GoalFactory(user=goal.user).thread, "every day 7:00", "Look.")
    schedules.add(GoalFactory().thread, "every day 8:00", "Look there.")
    Schedule.objects.filter(kind=ScheduleKind.HEARTBEAT).delete()
    clock(datetime(2027, 3, 27, 9, tzinfo=UTC))
    for _ in range(200):
        firing.fire_due()
    assert sorted(brought()) == ["Look there.", "Look."]


def test_what_came_once_is_forgotten_after_three_months(clock: Clock, goal: Goal) -> None:
    schedules.add(goal.thread, "in 3 days", "Look.")
    schedules.add(goal.thread, "in 200 days", "Look later.")
    schedules.add(goal.thread, "every day 8:00", "Look each day.")
    clock(START + timedelta(days=4))
    firing.fire_due()
    clock(START + timedelta(days=93))
    firing.fire_due()
    assert Schedule.objects.filter(intent="Look.").exists()
    clock(START + timedelta(days=95))
    firing.fire_due()
    assert {*Schedule.objects.values_list("intent", flat=True)} == {"Look later.", "Look each day."}


def test_SCH_02_b_a_user_moves_in_the_moment_in_which_it_comes(
    clock: Clock, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules.add(goal.thread, "every day 8:00", "Look.")
    clock(datetime(2027, 3, 27, 7, tzinfo=UTC))
    firing.fire_due()
    read_all()
    clock(datetime(2027, 3, 28, 6, tzinfo=UTC))  # in summer time
    reckon = schedules.next_of

    def look() -> None:
        firing.fire_due()
        connection.close()

    def meanwhile(schedule: Schedule, now: datetime) -> datetime:
        monkeypatch.setattr(schedules, "next_of", reckon)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(look).result()
        return reckon(schedule, now)

    monkeypatch.setattr(schedules, "next_of", meanwhile)
    live_in(goal, "Europe/London")
    read_all()
    for hour in (6, 7):
        clock(datetime(2027, 3, 28, hour, tzinfo=UTC))
        firing.fire_due()
    assert brought() == ["Look.", "Look."]


def test_SCH_03_d_many_look_at_the_clock_at_once(clock: Clock, goal: Goal) -> None:
    for n in range(5):
        schedules.add(goal.thread, "every day 8:00", f"Look {n}.")
    clock(datetime(2027, 3, 27, 7, tzinfo=UTC))

    def look(_n: int) -> int:
        try:
            return firing.fire_due()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        taken = sum(pool.map(look, range(4)))
    assert taken + firing.fire_due() == 5  # nobody waits for another: the next tick has what was in somebody's hands
    assert sorted(brought()) == [f"Look {n}." for n in range(5)]


def test_seven_unchanged_days_cost_nothing(clock: Clock, goal: Goal) -> None:
    schedules.begin_to_beat(goal.thread)
    schedules.add(goal.thread, "every day 8:00", only_if_changed=True)
    AgentRunFactory(thread=goal.thread, status="succeeded", finished_at=datetime.now(UTC))
    AgentActionFactory(run__thread=goal.thread, tool="create_note")  # the agent's own doing
    AgentRun.objects.update(status="succeeded", finished_at=datetime.now(UTC))
    step(clock, START, START + timedelta(days=7), timedelta(minutes=30))
    assert brought() == []
    assert {*Schedule.objects.values_list("last_result", flat=True)} == {Result.UNCHANGED}
    notes.create_note(goal.thread, "Shoes")
    step(clock, START + timedelta(days=7), START + timedelta(days=9), timedelta(minutes=30))
    assert brought() == [firing.LOOK]


def test_a_changed_note_is_looked_at_once_its_user_is_done(clock: Clock, goal: Goal) -> None:
    AgentRunFactory(thread=goal.thread, status="succeeded", finished_at=datetime.now(UTC))
    notes.create_note(goal.thread, "Shoes")
    for minute in (0, 10, 20):
        clock(START + timedelta(minutes=minute))
        schedules.note_changed(goal.thread)
    begin, end = START + timedelta(minutes=20), START + timedelta(hours=3)
    assert step(clock, begin, end, timedelta(minutes=1)) == [START + timedelta(minutes=35)]
    assert brought() == [firing.INTENTS[ScheduleKind.REVIEW]]


def test_quiet_hours_put_off_what_an_agent_begins_by_itself(clock: Clock, goal: Goal) -> None:
    client = Client()
    client.force_login(goal.user)
    profile = {"name": "Ada", "time_zone": "Europe/Berlin", "quiet_from": "22:00", "quiet_to": ""}
    page = client.get("/settings/").text
    assert "<h2>Quiet hours</h2>" in page
    assert "times that recur, such as every day 8:00, come all the same" in page
    assert "Give both times" in client.post("/settings/", profile).text
    assert client.post("/settings/", profile | {"quiet_to": "07:00"}).status_code == 302
    clock(datetime(2027, 1, 10, 12, tzinfo=UTC))
    schedules.add(goal.thread, "in 10 hours", "Follow up.")  # 23:00 in Berlin
    schedules.add(goal.thread, "every day 23:30", "As I said.")
    begin, end = datetime(2027, 1, 10, 21, 30, tzinfo=UTC), datetime(2027, 1, 11, 8, tzinfo=UTC)
    assert step(clock, begin, end, timedelta(minutes=30)) == [
        datetime(2027, 1, 10, 22, 30, tzinfo=UTC),
        datetime(2027, 1, 11, 6, tzinfo=UTC),
    ]
    assert brought() == ["As I said.", "Follow up."]


def test_what_is_paused_or_put_away_is_not_woken(clock: Clock, goal: Goal) -> None:
    paused = schedules.add(goal.thread, "every day 8:00", "Paused.")
    schedules.pause(paused)
    other = schedules.add(goal.thread, "in 1 hour", "Put away.")
    clock(START + timedelta(days=3))
    archive_goal(goal)
    firing.fire_due()
    assert brought() == []
    other.refresh_from_db()
    assert (other.next_at, other.last_result) == (None, Result.UNCHANGED)
    paused.refresh_from_db()
    schedules.resume(paused)
    assert paused.next_at == datetime(2027, 3, 30, 6, tzinfo=UTC)


def test_nobody_works_for_a_user_who_was_shut_out(clock: Clock, goal: Goal) -> None:
    schedules.add(goal.thread, "every day 8:00")
    goal.user.is_active = False
    goal.user.save()
    assert step(clock, START, START + timedelta(days=2), timedelta(hours=1)) == []
    goal.user.is_active = True
    goal.user.save()
    assert firing.fire_due() == 1


@pytest.mark.parametrize(
    ("hours_ago", "pause"), [(1, 12), (47, 12), (3 * 24, 48), (8 * 24, 120)], ids=["today", "yesterday", "3 days", "8"]
)
def test_an_agent_looks_in_the_more_rarely_the_longer_its_user_is_away(
    hours_ago: int, pause: int, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    monkeypatch.setattr(firing, "last_said", lambda _thread: now - timedelta(hours=hours_ago))
    assert firing.pause_of(goal.thread_id, now) == timedelta(hours=pause)


@pytest.mark.parametrize(
    ("time", "intent", "code"),
    [
        ("whenever", "", "time"),
        ("every now and then", "", "time"),
        ("today 0:00", "", "time"),
        ("9999-12-31 23:00", "", "time"),
        ("in 9999 weeks", "", "time"),
        ("0 r * * *", "", "time"),
        ("0 8 r(1-5) * *", "", "time"),
        ("daily 8", "x" * 2001, "too_long"),
    ],
)
def test_what_cannot_be_is_refused(time: str, intent: str, code: str, goal: Goal, clock: Clock) -> None:
    live_in(goal, "America/New_York")
    with pytest.raises(Refused) as refused:
        schedules.add(goal.thread, time, intent)
    assert refused.value.code == code
    assert not Schedule.objects.exists()
