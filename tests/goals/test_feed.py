"""The feed on its pages, and what is new since its user last looked (missions A13 and H11)."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.services import assistant_of
from goals import feeds, looks
from goals.feed import Feed, FeedItem, Rating
from goals.models import Goal, Look, Schedule, ScheduleKind
from goals.services import archive_goal
from goals.updates import Kind, horizon, updates
from memory.models import AgentRun, ThreadMessage
from tests.factories import AgentActionFactory, AgentRunFactory, GoalFactory, ThreadMessageFactory, UserFactory, bearer
from tools.base import Effect, Reversal
from tools.models import ActionStatus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory(user=user, title="Vienna half marathon")
    return goal


def happened(goal: Goal, text: str = "The plan respects your knee. Three days of rest.") -> ThreadMessage:
    run = AgentRunFactory(thread=goal.thread, finished_at=timezone.now())
    message: ThreadMessage = ThreadMessageFactory(thread=goal.thread, run=run, source="agent", content=text)
    AgentActionFactory(
        run=run,
        thread=goal.thread,
        user=goal.user,
        tool="create_note",
        effect=Effect.LOCAL,
        reversal=Reversal.UNDOABLE,
        status=ActionStatus.DONE,
        summary="Plan",
        undo={"changes": []},
        finished_at=timezone.now(),
    )
    return message


@pytest.fixture
def item(goal: Goal) -> FeedItem:
    """Of a feed that is written."""
    said = happened(goal)
    feed = feeds.begin(assistant_of(goal.user).thread, timezone.now())
    assert feed is not None
    Feed.objects.filter(pk=feed.pk).update(brief="Your knee changed the week.", written_at=timezone.now())
    return FeedItem.objects.create(
        user=goal.user,
        feed=feed,
        thread=goal.thread,
        place=0,
        kind="question",
        title="Raisins in the strudel?",
        body="Two **letters** disagree.",
        evidence=[{"of": "message", "id": str(said.pk), "said": "The plan respects your knee"}],
    )


def test_home_and_its_own_page_show_it_with_what_it_rests_on(item: FeedItem, client: Client) -> None:
    for address in ("/", "/feed/"):
        client.post("/welcome/skip/")
        page = client.get(address).content.decode()
        assert "Your knee changed the week." in page
        assert "Raisins in the strudel?" in page
        assert "<strong>letters</strong>" in page
        proof = item.evidence[0]["id"]
        assert f'href="/messages/{proof}/"' in page
    answer = client.get(f"/messages/{proof}/")
    assert answer["Location"].startswith(f"/goals/{item.thread.goals_goal.pk}/")


def test_home_says_once_what_the_feed_of_today_says(item: FeedItem, client: Client) -> None:
    client.post("/welcome/skip/")
    assert "Three days of rest." not in client.get("/").content.decode()
    client.post(f"/feed/items/{item.pk}/dismiss")
    assert "Three days of rest." in client.get("/").content.decode()


def test_the_brief_says_whose_texts_its_writer_had_read(item: FeedItem, client: Client) -> None:
    Feed.objects.filter(pk=item.feed_id).update(sources=["evil.example"])
    client.post("/welcome/skip/")
    for address in ("/", "/feed/"):
        assert "evil.example" in client.get(address).content.decode()
    (feed,) = client.get("/api/v1/feeds", headers=bearer(item.user)).json()["results"]
    assert feed["sources"] == ["evil.example"]


def test_an_item_is_dismissed_brought_back_and_rated(item: FeedItem, client: Client) -> None:
    client.post("/welcome/skip/")
    client.post(f"/feed/items/{item.pk}/dismiss")
    assert "Raisins" not in client.get("/").content.decode()
    assert "Raisins" in client.get("/feed/").content.decode()
    client.post(f"/feed/items/{item.pk}/bring-back", {"next": "feed"})
    assert "Raisins" in client.get("/").content.decode()
    client.post(f"/feed/items/{item.pk}/rate/less")
    item.refresh_from_db()
    assert item.rating == Rating.LESS
    assert client.post(f"/feed/items/{item.pk}/rate/much").status_code == 404


def test_a_feed_of_a_clock_that_went_ahead_keeps_no_other_from_being_written(item: FeedItem, goal: Goal) -> None:
    ahead = timezone.now() + timedelta(days=30)
    Feed.objects.update(day=ahead.date(), until=ahead)
    happened(goal, "The shoes are here. Two pairs.")
    feed = feeds.begin(assistant_of(goal.user).thread, timezone.now())
    assert feed is not None
    assert "The shoes are here" in feeds.material(feed)


def test_what_is_liked_and_disliked_is_told_to_the_next_one(item: FeedItem, goal: Goal) -> None:
    feeds.rate(item, Rating.LESS)
    Feed.objects.update(day=timezone.now().date() - timedelta(days=1))
    happened(goal, "The shoes are here.")
    feed = feeds.begin(assistant_of(goal.user).thread, timezone.now())
    assert feed is not None
    assert "The user wants less like: Raisins in the strudel?" in feeds.material(feed)


def test_it_is_put_into_the_conversation_once_and_calls_no_model(item: FeedItem, client: Client) -> None:
    FeedItem.objects.filter(pk=item.pk).update(sources=["evil.example"])
    runs = AgentRun.objects.count()
    for _twice in range(2):
        answer = client.post(f"/feed/items/{item.pk}/discuss")
    assert answer["Location"] == f"/goals/{item.thread.goals_goal.pk}/"
    assert ThreadMessage.objects.filter(content__contains="**Raisins in the strudel?**").count() == 1
    assert AgentRun.objects.count() == runs
    item.thread.refresh_from_db()
    assert "The user wants to talk about this" in item.thread.news
    assert item.thread.sources == ["evil.example"]
    assert "Raisins in the strudel?" in client.get(answer["Location"]).content.decode()
    client.post(f"/feed/{item.feed_id}/discuss")
    assert ThreadMessage.objects.filter(
        content__contains="Your knee changed the week.", thread=item.feed.thread
    ).exists()


def test_a_feed_that_its_model_did_not_write_is_said_to_be_missing(goal: Goal, client: Client) -> None:
    happened(goal)
    thread = assistant_of(goal.user).thread
    assert feeds.begin(thread, timezone.now()) is not None
    assert "no feed came of it" not in client.get("/feed/").text
    run = AgentRunFactory.create(thread=thread, context_type="feed_generation", status="running")
    Feed.objects.update(run=run.pk)
    assert "no feed came of it" not in client.get("/feed/").text
    AgentRun.objects.filter(pk=run.pk).update(status="succeeded", finished_at=timezone.now())
    page = client.get("/feed/").text
    assert "no feed came of it" in page
    assert f"/jobs/{run.pk}/" in page
    Feed.objects.update(written_at=timezone.now(), brief="Here it is.")
    assert "no feed came of it" not in client.get("/feed/").text


def test_nobody_else_reaches_it(item: FeedItem) -> None:
    other = Client()
    other.force_login(UserFactory())
    for address in ("dismiss", "bring-back", "rate/more", "discuss"):
        assert other.post(f"/feed/items/{item.pk}/{address}").status_code == 404
    assert other.post(f"/feed/{item.feed_id}/discuss").status_code == 404
    assert other.get(f"/messages/{item.evidence[0]['id']}/").status_code == 404
    assert "knee" not in other.get("/feed/").content.decode()


def test_its_hour_is_set_by_its_user_and_may_be_never(goal: Goal, client: Client) -> None:
    profile = {"name": "Ada", "time_zone": "Europe/Berlin", "quiet_from": "", "quiet_to": ""}
    client.post("/settings/", profile | {"feed_at": "06:15"})
    schedule = Schedule.objects.get(kind=ScheduleKind.FEED)
    assert (schedule.rule, schedule.paused) == ("15 6 * * *", False)
    assert 'value="06:15"' in client.get("/settings/").content.decode()
    client.post("/settings/", profile | {"feed_at": ""})
    schedule.refresh_from_db()
    assert schedule.paused
    assert "No feed is written" in client.get("/feed/").content.decode()


def test_a_profile_that_is_saved_before_the_first_goal_switches_nothing_off(client: Client, user: User) -> None:
    profile = {"name": "Ada", "time_zone": "Europe/Berlin", "quiet_from": "", "quiet_to": "", "feed_at": ""}
    client.post("/settings/", profile)
    GoalFactory(user=user)
    assert feeds.hour_of(user) == feeds.USUAL


def test_what_a_goal_did_that_was_put_away_since_is_not_told(goal: Goal, client: Client) -> None:
    client.post("/welcome/skip/")
    happened(goal)
    archive_goal(goal)
    for address in ("/", "/since/"):
        page = client.get(address)
        assert page.status_code == 200
        assert "Created a note Plan" not in page.content.decode()


def test_news_of_goals_that_the_frame_has_no_room_for_are_told(
    goal: Goal, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goals.context.SHOWN", 0)
    client.post("/welcome/skip/")
    happened(goal)
    assert client.get("/").status_code == 200
    page = client.get("/since/").content.decode()
    assert "Created a note Plan" in page
    assert "Vienna half marathon" in page


def test_what_is_talked_about_is_not_what_an_agent_said_last(item: FeedItem, client: Client) -> None:
    client.post("/welcome/skip/")
    client.post(f"/feed/items/{item.pk}/discuss")
    client.post(f"/feed/items/{item.pk}/dismiss")
    assert "Raisins" not in client.get("/").content.decode()


def test_home_tells_what_is_new_since_this_device_last_looked(goal: Goal, client: Client) -> None:
    client.post("/welcome/skip/")
    assert "Since you last looked" not in client.get("/").content.decode()
    happened(goal)
    for _within_a_sitting in range(2):
        page = client.get("/").content.decode()
        assert "Since you last looked" in page
        assert "The plan respects your knee" in page
        assert "1 change" in page
    whole = client.get("/since/").content.decode()
    assert "Created a note Plan" in whole
    Look.objects.update(seen=horizon(), since=horizon() - timedelta(days=2))
    Look.objects.update(seen=horizon() - timedelta(minutes=31))
    other = Client()
    other.force_login(goal.user)
    assert "Since you last looked" in other.get("/").content.decode()


def test_whoever_has_been_away_begins_where_they_left_off(goal: Goal, client: Client) -> None:
    client.post("/welcome/skip/")
    happened(goal)
    client.get("/")
    long_ago = horizon()
    Look.objects.update(seen=long_ago, since=long_ago - timedelta(days=1))
    device = Look.objects.get().device
    assert looks.look(goal.user, device) == long_ago - timedelta(days=1)  # the sitting goes on
    Look.objects.update(seen=long_ago - looks.SITTING)
    assert looks.look(goal.user, device) == long_ago - looks.SITTING
    assert looks.look(goal.user, device) == long_ago - looks.SITTING


def test_a_device_that_has_never_looked_begins_no_sooner_than_its_user(user: User) -> None:
    assert looks.look(user, "a" * 32) == looks.since(user, "b" * 32) == user.date_joined
    user.date_joined -= timedelta(days=7)
    assert looks.since(user, "b" * 32) < looks.look(user, "c" * 32) + timedelta(seconds=9) < horizon()


def test_a_page_that_brings_itself_up_to_date_is_no_look(goal: Goal, client: Client) -> None:
    client.post("/welcome/skip/")
    client.get("/")
    seen = Look.objects.get().seen
    client.get("/", headers={"HX-Request": "true"})
    assert Look.objects.get().seen == seen


@pytest.mark.parametrize("name", ['"\\000"', "x" * 200, "../..", ""])
def test_a_device_has_a_name_of_ours(name: str, goal: Goal, client: Client) -> None:
    client.post("/welcome/skip/")
    client.cookies["waymark_device"] = name
    for address in ("/", "/since/"):
        assert client.get(address).status_code == 200
    assert all(len(look.device) == 32 for look in Look.objects.all())


def test_nothing_falls_between_two_looks(goal: Goal, other_connection: Callable[[str], None]) -> None:
    """What was begun before a look and is committed after it bears an earlier time, and is told by the next one."""
    run = AgentRunFactory(thread=goal.thread)
    insert = (
        "INSERT INTO memory_threadmessage (id, thread_id, run_id, source, message_type, content, metadata) "
        f"VALUES (gen_random_uuid(), '{goal.thread_id}', '{run.pk}', 'agent', 'text', 'Late but not lost.', '{{}}')"
    )
    other_connection("BEGIN")
    other_connection(insert)
    until = horizon()
    assert not updates(goal.user, until, [goal.thread_id])
    happened(goal)
    other_connection("COMMIT")
    found = updates(goal.user, until, [goal.thread_id])
    assert "Late but not lost" in [update.said for update in found if update.kind == Kind.ANSWER]


@pytest.fixture
def other_connection() -> Iterator[Callable[[str], None]]:
    """Executes statements as another worker would."""
    other = connection.copy()
    other.ensure_connection()

    def execute(sql: str) -> None:
        other.connection.execute(sql)

    yield execute
    other.close()
