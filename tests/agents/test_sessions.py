"""Earlier sessions as people see them: in the thread, on their own pages, and over the API."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.engine import bell
from agents.live.screen import whole
from agents.services import assistant_of
from goals.models import Goal
from memory.models import AgentHistory, AgentRun, RunStatus, ThreadMessage
from memory.recall import find_sessions
from tests.factories import (
    AgentHistoryFactory,
    AgentRunFactory,
    GoalFactory,
    HistoryEntryFactory,
    ThreadMessageFactory,
    bearer,
)

pytestmark = pytest.mark.django_db(transaction=True)
XSS = "<img src=x onerror=alert(1)>"


@pytest.fixture
def goal() -> Goal:
    return GoalFactory.create()


@pytest.fixture
def client(goal: Goal) -> Client:
    agent = assistant_of(goal.user)
    agent.welcomed = True
    agent.save()
    browser = Client()
    browser.force_login(goal.user)
    return browser


def turn(goal: Goal, words: str) -> ThreadMessage:
    run = AgentRunFactory(thread=goal.thread)
    ThreadMessageFactory(thread=goal.thread, run=run, content=words)
    answer: ThreadMessage = ThreadMessageFactory(thread=goal.thread, run=run, source="agent", content=f"Re: {words}")
    answer.refresh_from_db()
    return answer


def page(client: Client, name: str, *args: object, **query: str) -> str:
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_thread_shows_where_a_session_ended_and_keeps_its_messages(goal: Goal, client: Client) -> None:
    last = turn(goal, "First")
    AgentHistoryFactory(thread=goal.thread, summary="They began", position=last.position)
    html = page(client, "goal", goal.pk)
    assert html.index("Re: First") < html.index("They began"), "also when nothing came after it"
    turn(goal, "Second")
    html = page(client, "goal", goal.pk)
    assert html.index("Re: First") < html.index("They began") < html.index("Second")
    assert reverse("thread_sessions", args=[goal.thread_id]) in html


def test_a_session_that_ended_before_the_shown_turns_is_not_shown_at_the_first(goal: Goal, client: Client) -> None:
    early = turn(goal, "Early")
    AgentHistoryFactory(thread=goal.thread, summary="Long ago", position=early.position)
    for number in range(20):
        turn(goal, f"Later {number}")
    shown = whole(goal.thread)
    assert not any("Long ago" in drawn.html for drawn in shown.drawn)


def test_an_error_of_an_archived_session_offers_no_retry(goal: Goal, client: Client) -> None:
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.FAILED)
    ThreadMessageFactory(thread=goal.thread, run=run, content="Hi")
    error = ThreadMessageFactory(
        thread=goal.thread, run=run, source="error", content="Away", metadata={"retryable": True, "reason": "error"}
    )
    error.refresh_from_db()
    again = reverse("message_retry", args=[error.pk])
    assert again in page(client, "goal", goal.pk)
    AgentHistoryFactory(thread=goal.thread, position=error.position)
    assert again not in page(client, "goal", goal.pk)


def test_sessions_are_listed_searched_and_read(goal: Goal, client: Client) -> None:
    session = AgentHistoryFactory(thread=goal.thread, title=f"Footwear {XSS}", summary=f"About shoes {XSS}")
    AgentHistoryFactory(thread=goal.thread, summary="About food", text="User: What shall I eat?")
    listed = page(client, "thread_sessions", goal.thread_id)
    assert "About shoes" in listed
    assert "About food" in listed
    assert XSS not in listed
    for words in ("blue", "footwear"):
        found = page(client, "thread_sessions", goal.thread_id, q=words)
        assert "About shoes" in found
        assert ("The blue ones." in found) is (words == "blue")
        assert "About food" not in found
    assert "No session has these words" in page(client, "thread_sessions", goal.thread_id, q="zzzz")
    read = page(client, "session", session.pk)
    assert "Footwear" in read
    assert "Which shoes?" in read
    assert "<strong>blue</strong>" in read
    assert XSS not in read


def test_the_assistants_sessions_have_the_same_pages(goal: Goal, client: Client) -> None:
    thread = assistant_of(goal.user).thread
    session = AgentHistoryFactory(thread=thread)
    assert reverse("assistant") in page(client, "thread_sessions", thread.pk)
    assert "Which shoes?" in page(client, "session", session.pk)


def test_sessions_of_others_do_not_exist(client: Client) -> None:
    other = AgentHistoryFactory()
    for name, key in (("session", other.pk), ("thread_sessions", other.thread_id)):
        assert client.get(reverse(name, args=[key])).status_code == 404
    assert client.post(reverse("sessions_archive", args=[other.thread_id])).status_code == 404


def test_what_is_only_reserved_or_failed_is_not_shown(goal: Goal, client: Client) -> None:
    session = AgentHistoryFactory(thread=goal.thread, summary="Half done", status="failed", position=1)
    assert "Half done" not in page(client, "thread_sessions", goal.thread_id)
    assert client.get(reverse("session", args=[session.pk])).status_code == 404
    listed = client.get(reverse("api:goal_sessions", args=[goal.pk]), headers=bearer(goal.user)).json()
    assert listed["results"] == []


def test_a_new_session_can_be_begun_by_hand(goal: Goal, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def ring(*what: object) -> bool:
        asked.append(what)
        return True

    monkeypatch.setattr(bell, "ring_archive", ring)
    address = reverse("sessions_archive", args=[goal.thread_id])
    assert "Nothing was said" in client.post(address, follow=True).content.decode()
    HistoryEntryFactory(thread=goal.thread)
    run: AgentRun = AgentRunFactory(thread=goal.thread, status=RunStatus.RUNNING)
    assert "at work" in client.post(address, follow=True).content.decode()
    assert asked == []
    AgentRun.objects.filter(pk=run.pk).update(status=RunStatus.SUCCEEDED)
    assert "being summed up" in client.post(address, follow=True).content.decode()
    assert asked == [(goal.thread_id, goal.user_id, "by_hand")]


def test_the_api_lists_and_reads_sessions(goal: Goal) -> None:
    first: AgentHistory = AgentHistoryFactory(thread=goal.thread, summary="One")
    AgentHistoryFactory(thread=goal.thread, summary="Two")
    headers = bearer(goal.user)
    listed = Client().get(reverse("api:goal_sessions", args=[goal.pk]), {"limit": 1}, headers=headers).json()
    assert [(each["number"], each["summary"]) for each in listed["results"]] == [(2, "Two")]
    rest = Client().get(listed["next"], headers=headers).json()
    assert [each["id"] for each in rest["results"]] == [str(first.pk)]
    assert "entries" not in rest["results"][0]
    whole_one = Client().get(reverse("api:session", args=[first.pk]), headers=headers).json()
    assert whole_one["entries"][1]["blocks"] == [{"type": "text", "text": "The **blue** ones."}]


class TestSearch:
    """`find_sessions`, which the agent's tool and the page share."""

    def test_summaries_and_what_was_said_are_searched(self, goal: Goal) -> None:
        said = AgentHistoryFactory(thread=goal.thread, summary="Nothing", text="User: the Zugspitze in June")
        summed = AgentHistoryFactory(thread=goal.thread, summary="Zugspitze by train", text="")
        AgentHistoryFactory(thread=goal.thread, summary="Food", text="Bread")
        assert [found.id for found in find_sessions(goal.thread_id, "zugspitze")] == [summed.pk, said.pk]

    def test_operators_are_those_of_a_web_search(self, goal: Goal) -> None:
        AgentHistoryFactory(thread=goal.thread, summary="a", text="blue shoes")
        both = AgentHistoryFactory(thread=goal.thread, summary="b", text="shoes that are blue")
        assert len(find_sessions(goal.thread_id, '"blue shoes"')) == 1
        assert [found.id for found in find_sessions(goal.thread_id, '"shoes that" -food')] == [both.pk]

    def test_words_that_look_alike_are_found_when_none_are_the_same(self, goal: Goal) -> None:
        AgentHistoryFactory(thread=goal.thread, summary="The half marathon in May", text="")
        AgentHistoryFactory(thread=goal.thread, summary="Bread", text="")
        assert [found.summary for found in find_sessions(goal.thread_id, "maraton")] == ["The half marathon in May"]

    def test_at_most_five_of_the_timeframe(self, goal: Goal) -> None:
        old = timezone.now() - timedelta(days=20)
        for _ in range(3):
            AgentHistoryFactory(thread=goal.thread, ended_at=old)
        for _ in range(6):
            AgentHistoryFactory(thread=goal.thread)
        assert len(find_sessions(goal.thread_id, "shoes")) == 5
        assert len(find_sessions(goal.thread_id, "shoes", most=99)) == 9
        assert len(find_sessions(goal.thread_id, "shoes", "week", most=99)) == 6
        assert len(find_sessions(goal.thread_id, "shoes", "month", most=99)) == 9

    def test_other_threads_are_not_searched(self, goal: Goal) -> None:
        AgentHistoryFactory()
        assert find_sessions(goal.thread_id, "shoes") == []
        assert find_sessions(goal.thread_id, "") == []

    @pytest.mark.parametrize("query", ["\x00", "'", "%", "(((", "- - -", "or", "\ud83d", '"', "a" * 5_000, "🟡"])
    def test_no_query_breaks_it(self, goal: Goal, query: str) -> None:
        AgentHistoryFactory(thread=goal.thread)
        find_sessions(goal.thread_id, query)


def test_a_session_tells_what_was_done_in_the_words_of_the_chat(goal: Goal, client: Client) -> None:
    at = timezone.now().isoformat()
    call = {
        "type": "tool_use",
        "id": "call_1",
        "name": "create_note",
        "arguments": {"title": "Shoes", "body": "Size 42"},
    }
    lost = {"type": "tool_use", "id": "call_2", "name": "create_note", "arguments": {"title": "Socks", "body": ""}}
    blocks = [
        ("assistant", [{"type": "thinking", "text": "A note, then"}, call, lost]),
        ("tool", [{"type": "tool_result", "id": "call_1", "content": "It is note 7"}]),
        ("tool", [{"type": "tool_result", "id": "call_2", "content": "No room", "is_error": True}]),
    ]
    entries = [
        {"seq": seq, "role": role, "blocks": parts, "run": None, "at": at} for seq, (role, parts) in enumerate(blocks)
    ]
    session = AgentHistoryFactory(thread=goal.thread, entries=entries, message_count=3, reason="idle")
    html = page(client, "session", session.pk)
    assert html.count("<details") == 3
    for words in ("Thought</span>", "Created a note Shoes", "It is note 7", "Could not create a note Socks", "No room"):
        assert words in html
    assert "call_1" not in html
    listed = page(client, "thread_sessions", goal.thread_id)
    assert "3 messages" in listed
    assert "ended because nothing was said for a while" in listed
