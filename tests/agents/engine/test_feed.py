"""The feed: gathered by code, written by the assistant, once a day (missions A13 and H10)."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from agents import services
from agents.engine import jobs
from agents.models import ModelConnection
from agents.services import assistant_of
from agents.undoing import take_back
from goals import firing
from goals.feed import Feed, FeedItem
from goals.feeds import set_hour
from goals.models import Goal, Schedule, ScheduleKind
from memory.models import AgentHistory, AgentRun, ThreadMessage
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]
type Tomorrow = Callable[[], Feed | None]

WRITTEN = {
    "brief": "The plan for May stands.",
    "items": [{"kind": "progress", "title": "A plan", "body": "Twelve **weeks**.", "evidence": ["e1", "e2"]}],
}


@pytest.fixture
def archived(monkeypatch: pytest.MonkeyPatch) -> list[tuple[UUID, str]]:
    """The sessions that were rung for."""
    rung: list[tuple[UUID, str]] = []
    monkeypatch.setattr("agents.engine.bell.ring_archive", lambda thread, user, why: rung.append((thread, why)))
    return rung


@pytest.fixture(autouse=True)
def clock(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let a day pass, to its noon: some minutes later it is the same one. Nothing comes by the clock but the feed."""
    Schedule.objects.exclude(kind=ScheduleKind.FEED).delete()
    began = [timezone.now().replace(hour=12)]

    def another_day() -> None:
        began.append(began[-1] + timedelta(days=1))
        monkeypatch.setattr(timezone, "now", lambda: began[-1])

    return another_day


@pytest.fixture
def tomorrow(clock: Callable[[], None], rung: list[UUID]) -> Tomorrow:
    """Let the hour of the feed come; returns the last one that there is."""

    def come() -> Feed | None:
        clock()
        firing.fire_due()
        work(rung)
        return Feed.objects.order_by("-created_at").first()

    return come


def work(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def did_something(say: Say, llm: LLMServer, title: str = "Plan") -> None:
    llm.script([Reply(calls=[("create_note", {"title": title, "body": "Run."})]), Reply(text=f"{title} is made.")])
    say("Make a plan")


def test_it_is_written_by_the_assistant_from_what_has_come_about(
    goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer, archived: list[tuple[UUID, str]]
) -> None:
    did_something(say, llm)
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="Done.")])
    feed = tomorrow()
    assert feed is not None
    assert feed.brief == "The plan for May stands."
    (item,) = FeedItem.objects.all()
    assert (item.kind, item.title, item.body) == ("progress", "A plan", "Twelve **weeks**.")
    assert item.thread_id == goal.thread_id
    note = AgentAction.objects.get(tool="create_note")
    answer = ThreadMessage.objects.get(content="Plan is made.")
    assert {each["id"] for each in item.evidence} == {str(note.pk), str(answer.pk)}
    told = str(llm.requests[-1].messages)
    assert "It said: Plan is made" in told
    assert "Created a note Plan" in told
    assert feed.run is not None
    run = AgentRun.objects.get(pk=feed.run)
    assert (run.trigger, run.context_type, run.status) == ("schedule", "feed_generation", "succeeded")
    assert run.thread_id == assistant_of(goal.user).thread_id
    assert not ThreadMessage.objects.filter(content="Done.").exists()  # nobody waits for its last words
    assert archived == [(run.thread_id, "feed")]


def test_its_session_is_archived_right_after(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text=""), Reply(text="The feed\n\nWas written.")])
    feed = tomorrow()
    assert feed is not None
    jobs.archive(str(feed.thread_id), "feed")
    session = AgentHistory.objects.get(thread=feed.thread_id)
    assert (session.status, session.reason) == ("done", "feed")


def test_a_week_without_news_calls_no_model_and_says_nothing(
    goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer
) -> None:
    did_something(say, llm)
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    tomorrow()
    calls, messages = len(llm.requests), ThreadMessage.objects.count()
    for _day in range(7):
        tomorrow()
    assert Feed.objects.count() == 1
    assert (len(llm.requests), ThreadMessage.objects.count()) == (calls, messages)
    assert Schedule.objects.get(kind=ScheduleKind.FEED).last_result == "unchanged"


def test_a_day_has_one_feed_however_often_its_hour_comes(
    goal: Goal, say: Say, rung: list[UUID], tomorrow: Tomorrow, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    did_something(say, llm)
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    tomorrow()
    did_something(say, llm, "Shoes")
    calls = len(llm.requests)
    set_hour(goal.user, (timezone.now() + timedelta(minutes=1)).time())
    soon = timezone.now() + timedelta(minutes=2)
    monkeypatch.setattr(timezone, "now", lambda: soon)
    firing.fire_due()
    work(rung)
    assert Feed.objects.count() == 1
    assert len(llm.requests) == calls


def test_the_next_one_tells_only_of_what_came_since(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    tomorrow()
    did_something(say, llm, "Shoes")
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    tomorrow()
    handed = ThreadMessage.objects.filter(metadata__has_key="feed").order_by("position").last()
    assert handed is not None
    assert "Shoes is made" in handed.content
    assert "Plan is made" not in handed.content


def test_facts_that_do_not_exist_are_refused(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)
    lie = {"brief": "Great things.", "items": [{"kind": "discovery", "title": "Gold", "evidence": ["e9"]}]}
    llm.script([Reply(calls=[("write_feed", lie)]), Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    feed = tomorrow()
    assert feed is not None
    assert feed.brief == WRITTEN["brief"]
    assert "There are no facts e9" in str(llm.requests[-2].messages)
    assert FeedItem.objects.get().title == "A plan"


def test_nobody_else_is_offered_to_write_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Hello.")])
    say("Hello")
    services.send_message(assistant_of(goal.user).thread, "Hello")
    assert "write_feed" not in str(llm.requests[-1].body)


def test_an_assistant_at_work_does_that_first(
    goal: Goal, say: Say, rung: list[UUID], clock: Callable[[], None], llm: LLMServer
) -> None:
    did_something(say, llm)
    llm.script([Reply(text="Yes."), Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    services.send_message(assistant_of(goal.user).thread, "Are you there?")
    clock()
    assert firing.fire_due() == 0
    work(rung)
    assert firing.fire_due() == 1
    work(rung)
    assert Feed.objects.get().brief == WRITTEN["brief"]


def test_what_strangers_have_written_goes_with_it(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)
    goal.thread.sources = ["evil.example"]
    goal.thread.save()
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    feed = tomorrow()
    assert feed is not None
    assert FeedItem.objects.get().sources == ["evil.example"]
    assert assistant_of(goal.user).thread.sources == ["evil.example"]


def test_it_can_be_undone_and_written_again(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)
    llm.script([Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    feed = tomorrow()
    assert feed is not None
    undo = take_back(AgentAction.objects.get(tool="write_feed"), goal.user)
    feed.refresh_from_db()
    assert (feed.brief, feed.written_at, FeedItem.objects.count()) == ("", None, 0)
    assert undo is not None
    take_back(AgentAction.objects.get(tool="undo_action"), goal.user)
    feed.refresh_from_db()
    assert (feed.brief, FeedItem.objects.count()) == (WRITTEN["brief"], 1)


def test_a_feed_that_failed_is_written_when_it_is_tried_again(
    goal: Goal, say: Say, rung: list[UUID], tomorrow: Tomorrow, llm: LLMServer
) -> None:
    did_something(say, llm)
    llm.script([Status(401, {}), Reply(calls=[("write_feed", WRITTEN)]), Reply(text="")])
    feed = tomorrow()
    assert feed is not None
    assert feed.written_at is None
    failed = ThreadMessage.objects.get(thread=feed.thread_id, source="error")
    services.retry(failed)
    work(rung)
    feed.refresh_from_db()
    assert feed.brief == WRITTEN["brief"]


def test_the_demonstration_writes_one_as_well(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)
    ModelConnection.objects.all().delete()
    feed = tomorrow()
    assert feed is not None
    assert feed.brief == f"Something has come about on {goal.title}."
    item = FeedItem.objects.get()
    assert (item.title, item.thread_id, len(item.evidence)) == ("Plan is made", goal.thread_id, 2)


def test_a_user_who_writes_meanwhile_is_answered(goal: Goal, say: Say, tomorrow: Tomorrow, llm: LLMServer) -> None:
    did_something(say, llm)

    thread = assistant_of(goal.user).thread

    def joins(_request: Request) -> Reply:
        services.send_message(thread, "Good morning!")
        return Reply(calls=[("write_feed", WRITTEN)])

    llm.script([joins, Reply(text="Good morning. Your feed is written.")])
    tomorrow()
    assert ThreadMessage.objects.filter(content="Good morning. Your feed is written.").exists()
