"""A feed whose model was away is tried again the same day: later and later, and written once (mission A13)."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connections as database, transaction
from django.test import Client
from django.utils import timezone

from agents import services
from agents.budgets.models import Window
from agents.budgets.services import set_budget
from agents.connecting import Given, connect_model
from agents.engine import archiving
from agents.engine.posting import post
from agents.services import assistant_of
from agents.undoing import take_back
from goals import feed_writing, firing
from goals.feed import Feed, FeedItem
from goals.feeds import set_hour
from goals.models import Goal, Schedule, ScheduleKind
from goals.vitals import schedules_overdue
from memory.archive import Outcome
from memory.models import AgentRun, ArchiveReason, RunQuerySet, RunStatus, Source, Thread, ThreadMessage
from tests.agents.engine.test_approvals import EMAIL
from tests.agents.engine.test_archiving import summaries
from tests.agents.engine.test_budgets import PRICED
from tests.agents.engine.test_feed import WRITTEN, did_something, work
from tests.agents.engine.test_orchestrator import assert_quiet, wait_until
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer
from tests.locks import waiting
from tests.world import World
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]
type At = Callable[..., int]

AWAY = Status(429, {"retry-after": "7200"})
WRITES = (Reply(calls=[("write_feed", WRITTEN)]), Reply(text=""))


@pytest.fixture
def thread(goal: Goal, say: Say, llm: LLMServer) -> Thread:
    """Of the assistant, which writes at 7:30, with something to tell."""
    did_something(say, llm)
    Schedule.objects.exclude(kind=ScheduleKind.FEED).delete()
    thread: Thread = assistant_of(goal.user).thread
    return thread


@pytest.fixture
def at(thread: Thread, rung: list[UUID], monkeypatch: pytest.MonkeyPatch) -> At:
    """Let it be so late tomorrow, or so many days later, and two clocks tick twice; returns how many tries came of
    it."""
    tomorrow = timezone.now().date() + timedelta(days=1)

    def come(hour: int, minute: int = 0, *, days: int = 0) -> int:
        now = datetime.combine(tomorrow + timedelta(days=days), time(hour, minute), UTC)
        monkeypatch.setattr(timezone, "now", lambda: now)
        before = tries().count()
        for _look in range(2):
            firing.fire_due()
            firing.fire_due()
            work(rung)
        return tries().count() - before

    return come


@pytest.fixture
def home(goal: Goal, client: Client) -> Client:
    client.force_login(goal.user)
    client.post("/welcome/skip/")
    return client


def tries() -> RunQuerySet:
    return AgentRun.objects.filter(context_type="feed_generation").order_by("created_at")


def in_conversation(thread: Thread) -> list[str]:
    """What stands there of the feed."""
    mine = ThreadMessage.objects.filter(thread=thread).order_by("position")
    return ["material" if "feed" in message.metadata else message.source for message in mine]


def test_it_is_tried_again_later_and_later_and_never_twice_in_sight(
    goal: Goal, thread: Thread, at: At, llm: LLMServer
) -> None:
    away = [True]
    llm.always(lambda request: AWAY if away else WRITES[1 if request.results else 0])
    begun = [at(*moment) for moment in [(7, 30), (8, 29), (8, 30), (10, 29), (10, 30), (14, 29), (14, 30), (23, 59)]]
    assert begun == [1, 0, 1, 0, 1, 0, 1, 0]
    assert set(tries().values_list("status", "reason", "trigger")) == {("failed", "rate_limited", "schedule")}
    assert in_conversation(thread) == ["material", "error"]
    assert Feed.objects.get().written_at is None
    away.clear()
    assert at(7, 30, days=1) == 1
    unwritten, feed = Feed.objects.order_by("day")
    assert (unwritten.written_at, feed.brief) == (None, WRITTEN["brief"])
    assert feed.facts == unwritten.facts, "it tells what the other would have told"
    assert_quiet(goal, llm)


def test_one_try_that_succeeds_is_the_last_and_the_only_one_in_the_conversation(
    goal: Goal, thread: Thread, at: At, llm: LLMServer
) -> None:
    llm.script([AWAY, *WRITES])
    assert [at(7, 30), at(8, 30)] == [1, 1]
    assert Feed.objects.get().run == tries().latest("created_at").pk
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert in_conversation(thread) == ["material", "agent"], "and the step that wrote it"
    calls = len(llm.requests)
    assert [at(9, 30), at(10, 30), at(14, 30)] == [0, 0, 0]
    assert (len(llm.requests), FeedItem.objects.count()) == (calls, 1)
    assert_quiet(goal, llm)


def test_what_it_tells_is_handed_over_anew_when_its_session_is_archived(
    goal: Goal, thread: Thread, at: At, llm: LLMServer
) -> None:
    llm.script([AWAY])
    at(7, 30)
    summaries(llm, Reply(text="The feed\n\nIt failed."))
    assert archiving.archive_session(thread.pk, ArchiveReason.IDLE) is Outcome.DONE
    llm.script(list(WRITES))
    assert at(8, 30) == 1
    assert "It said: Plan is made" in llm.requests[-2].last_user_text
    assert Feed.objects.get().brief == WRITTEN["brief"]


def test_the_day_of_its_user_is_the_end(goal: Goal, thread: Thread, at: At, llm: LLMServer) -> None:
    set_hour(goal.user, time(23, 10))
    llm.always(lambda _request: AWAY)
    assert [at(23, 10), at(0, 10, days=1), at(1, 10, days=1), at(23, 10, days=1)] == [1, 0, 0, 1]


def test_quiet_hours_put_a_try_off(goal: Goal, thread: Thread, at: At, llm: LLMServer) -> None:
    assistant = assistant_of(goal.user)
    assistant.quiet_from, assistant.quiet_to = time(7), time(11, 45)
    assistant.save()
    llm.always(lambda _request: AWAY)
    assert [at(7, 30), at(8, 30), at(11, 44), at(11, 45)] == [1, 0, 0, 1], "its hour is its user's own word"


def test_who_moves_its_hour_or_wants_none_is_heard(goal: Goal, thread: Thread, at: At, llm: LLMServer) -> None:
    llm.always(lambda _request: AWAY)
    assert at(7, 30) == 1
    set_hour(goal.user, time(20))
    assert [at(8, 30), at(19, 59), at(20), at(21)] == [0, 0, 0, 1]
    set_hour(goal.user, None)
    assert [at(22), at(23)] == [0, 0]


@pytest.mark.parametrize(
    "answer",
    [Status(401, {}), Status(400, {}, {"error": {"message": "no"}}), Reply(text="There is nothing to write.")],
    ids=["key refused", "request refused", "not written"],
)
def test_what_does_not_pass_by_itself_is_not_tried_again_by_itself(
    answer: Status | Reply, thread: Thread, at: At, llm: LLMServer
) -> None:
    llm.always(lambda _request: answer)
    at(7, 30)
    calls = len(llm.requests)
    assert [at(8, 30), at(10, 30), at(14, 30)] == [0, 0, 0]
    assert len(llm.requests) == calls


def test_a_feed_that_its_user_has_undone_stays_undone(
    goal: Goal, thread: Thread, at: At, llm: LLMServer, home: Client
) -> None:
    llm.script([WRITES[0], AWAY])
    at(7, 30)
    assert tries().get().status == RunStatus.FAILED, "after it had written"
    take_back(AgentAction.objects.get(tool="write_feed"), goal.user)
    assert [at(8, 30), at(10, 30)] == [0, 0]
    assert "no feed came of it" not in home.get("/").text
    home.post("/feed/try")
    assert tries().count() == 1


def test_without_a_budget_nothing_is_asked_however_often_one_looks(
    goal: Goal, thread: Thread, at: At, llm: LLMServer
) -> None:
    connect_model(goal.user, "openai", Given(PRICED, llm.url, "key-of-the-test"))
    set_budget(goal.user, Window.TOTAL, Decimal("0.0001"), None)
    calls = len(llm.requests)
    assert [at(7, 30), at(8, 30), at(8, 50)] == [1, 0, 0]
    assert schedules_overdue() == 0, "nobody is told of it as if the clock stood still"
    assert [at(10, 30), at(14, 30), at(7, 30, days=1)] == [0, 0, 0]
    assert tries().get().status == RunStatus.WAITING_BUDGET
    assert len(llm.requests) == calls
    assert in_conversation(thread) == ["material", "error"]


def test_a_try_that_waits_for_its_users_word_gives_way_to_the_next(
    goal: Goal, thread: Thread, at: At, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[EMAIL]), *WRITES])
    assert at(7, 30) == 1
    assert tries().get().status == RunStatus.WAITING_APPROVAL
    assert [at(8, 29), at(8, 30)] == [0, 1]
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert AgentAction.objects.get(tool="send_email").status == "proposed"
    assert_quiet(goal, llm)


def test_its_mark_comes_back_with_it(goal: Goal, thread: Thread, at: At, llm: LLMServer) -> None:
    Thread.objects.filter(pk=goal.thread_id).update(sources=["evil.example"])
    llm.script([AWAY, *WRITES])
    at(7, 30)
    services.trust_again(thread)
    at(8, 30)
    thread.refresh_from_db()
    assert thread.sources == FeedItem.objects.get().sources == ["evil.example"]


@pytest.fixture
def joins(thread: Thread) -> Callable[[Request], Reply]:
    """A call of a model during which its user says something."""

    def joins(_request: Request) -> Reply:
        services.send_message(thread, "Good morning!")
        return Reply(calls=[("list_recent_actions", {})])

    return joins


def test_who_has_joined_a_try_keeps_what_it_came_to(
    goal: Goal, thread: Thread, at: At, llm: LLMServer, home: Client, joins: Callable[[Request], Reply]
) -> None:
    llm.script([joins, AWAY, *WRITES])
    at(7, 30)
    assert ">Try again<" in home.get("/").text, "they are owed an answer"
    assert ThreadMessage.objects.get(content="Good morning!").run == tries().get()
    at(8, 30)
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert Source.ERROR in in_conversation(thread), "its user had written to it"


def test_a_try_that_answered_its_user_instead_is_followed_by_another(
    goal: Goal, thread: Thread, at: At, llm: LLMServer, home: Client, joins: Callable[[Request], Reply]
) -> None:
    llm.script([joins, Reply(text="Good morning to you."), *WRITES])
    at(7, 30)
    page = home.get("/").text
    assert "It is tried again at 08:30." in page
    assert "needs a model" not in page
    assert at(8, 30) == 1
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert_quiet(goal, llm)


def test_a_try_that_was_stopped_is_no_fault_of_the_model(
    goal: Goal, thread: Thread, at: At, llm: LLMServer, home: Client
) -> None:
    llm.script([AWAY])
    at(7, 30)
    tries().update(status=RunStatus.CANCELLED, reason="stopped", error="")
    page = home.get("/").text
    assert "It was stopped." in page
    assert "needs a model" not in page


def test_who_has_switched_the_feed_off_misses_none(
    goal: Goal, thread: Thread, at: At, llm: LLMServer, home: Client
) -> None:
    llm.script([AWAY])
    at(7, 30)
    set_hour(goal.user, None)
    for days in (0, 1, 9):
        at(9, days=days)
        for address in ("/", "/feed/"):
            assert "no feed came of it" not in home.get(address).text


def test_home_says_that_it_is_missing_and_tries_at_once(
    goal: Goal, thread: Thread, at: At, rung: list[UUID], llm: LLMServer, home: Client
) -> None:
    llm.script([AWAY, *WRITES])
    at(7, 30)
    for address in ("/", "/feed/"):
        page = home.get(address).text
        assert "There is something to tell today, but no feed came of it." in page
        assert "limits how fast it may be asked" in page
        assert "It is tried again at 08:30." in page
        assert page.count("Try now") == 1
    assert ">Try again<" not in home.get("/").text, "it is said once"
    for _press in range(3):
        answer = home.post("/feed/try", {"next": "feed"}, follow=True)
    assert answer.redirect_chain == [("/feed/", 302)]
    assert "no feed came of it" not in answer.text
    assert len(rung) == 1
    firing.fire_due()
    work(rung)
    assert [run.trigger for run in tries()] == ["schedule", "retry"]
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert in_conversation(thread) == ["material", "agent"]
    assert WRITTEN["brief"] in home.get("/").text
    assert "no feed of today left to write" in home.post("/feed/try", follow=True).text
    assert [at(8, 30), at(10, 30)] == [0, 0]
    assert_quiet(goal, llm)


def test_presses_and_clocks_at_once_begin_one_try(
    goal: Goal, thread: Thread, at: At, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm.script([AWAY, *WRITES])
    at(7, 30)
    later = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(timezone, "now", lambda: later)

    def at_once(what: Callable[[], object]) -> None:
        try:
            what()
        finally:
            database.close_all()

    presses = [threading.Thread(target=at_once, args=[lambda: feed_writing.try_now(goal.user)]) for _press in range(4)]
    clocks = [threading.Thread(target=at_once, args=[firing.fire_due]) for _clock in range(4)]
    for each in (*presses, *clocks):
        each.start()
    for each in (*presses, *clocks):
        each.join()
    work(rung)
    assert tries().count() == 2
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert FeedItem.objects.count() == 1


def test_a_press_while_its_user_writes_leaves_the_message_its_run(
    goal: Goal, thread: Thread, at: At, rung: list[UUID], llm: LLMServer
) -> None:
    llm.script([AWAY, Reply(text="Good morning."), *WRITES])
    at(7, 30)

    def press() -> bool:
        try:
            return feed_writing.try_now(goal.user)
        finally:
            database.close_all()

    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            post(thread, "Hello!", inside=True)
            pressed = elsewhere.submit(press)
            wait_until(lambda: waiting() > 0, 20)
        assert pressed.result(timeout=20)
    work(rung)
    assert ThreadMessage.objects.filter(thread=thread, content="Good morning.").exists()
    assert at(7, 31) == 1
    assert ThreadMessage.objects.get(metadata__has_key="feed").run == tries().latest("created_at")
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert_quiet(goal, llm)


def test_a_press_while_a_call_waits_for_approval_lets_that_give_way(
    goal: Goal, thread: Thread, at: At, rung: list[UUID], llm: LLMServer, home: Client, world: World
) -> None:
    llm.script([Status(401, {}), Reply(calls=[EMAIL]), *WRITES])
    at(7, 30)
    services.send_message(thread, "Write to them")
    work(rung)
    home.post("/feed/try")
    assert "as soon as your assistant is free" in home.get("/").text
    assert at(7, 32) == 1
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert AgentAction.objects.get(tool="send_email").status == "proposed"
    assert_quiet(goal, llm)


def test_yesterdays_is_left_to_the_next_one(goal: Goal, thread: Thread, at: At, llm: LLMServer, home: Client) -> None:
    llm.script([AWAY])
    at(7, 30)
    at(6, days=1)
    page = home.get("/").text
    assert "no feed came of it" in page
    assert "The next one tells of it, too." in page
    assert "Try now" not in page
    assert "no feed of today left to write" in home.post("/feed/try", follow=True).text
    assert tries().count() == 1
