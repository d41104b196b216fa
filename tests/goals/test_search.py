"""One box over everything (mission E4), within what an index can take (case STO-03)."""

import secrets
from collections.abc import Sequence
from datetime import date

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.live.turns import SHOWN
from agents.models import PlanItem
from agents.services import assistant_of
from goals import measuring, schedules
from goals.models import Goal
from goals.search import Hit, search
from memory.documents import place, write_document
from memory.models import Skill, ThreadMessage
from memory.notes import create_note
from tests.factories import (
    AgentHistoryFactory,
    AgentTaskFactory,
    GoalFactory,
    LearningFactory,
    ThreadMessageFactory,
    bearer,
)
from tools import files
from tools.file_models import Writer

pytestmark = pytest.mark.django_db(transaction=True)


def found(user: User, said: str) -> list[tuple[str, str]]:
    return [(hit.kind.value, hit.name) for hit in search(user, said)]


@pytest.fixture
def filled(goal: Goal) -> Goal:
    """Something of each kind, with one word in all of it."""
    Goal.objects.filter(pk=goal.pk).update(title="Run", description="With a fox")
    create_note(goal.thread, "Animals", "One <b>fox</b> by the river, and a hedgehog.")
    ThreadMessageFactory(thread=goal.thread, content="I saw a fox today & it saw me.")
    ThreadMessageFactory(thread=goal.thread, content="A foxy thought", metadata={"thinking": True}, source="agent")
    AgentHistoryFactory(thread=goal.thread, title="Of foxes", summary="About animals.", text="the fox ran")
    LearningFactory(thread=goal.thread, text="Is afraid of the fox.")
    LearningFactory(thread=assistant_of(goal.user).thread, text="Likes every fox.")
    write_document(place(goal.user_id, goal.thread_id, "2026-11-29"), "Met the fox again.")
    write_document(place(goal.user_id, goal.thread_id, "USER"), "Has a tame fox.")
    files.write(goal.thread_id, "pictures/red-fox.txt", iter([b"x"]), files.Hand(Writer.USER))
    Skill.objects.create(user=goal.user, name="tracks", description="Reads tracks", text="Of a fox, too.")
    schedules.add(goal.thread, "every day 8:00", "Look for the fox")
    measuring.set_target(goal.thread, "Foxes seen", 12, date(2099, 1, 1))
    measuring.measure(goal.thread, 3, note="a fox with two cubs")
    PlanItem.objects.create(user=goal.user, thread=goal.thread, position=0, number="1", title="Find the fox")
    return goal


def test_everything_is_found_and_leads_there(filled: Goal, client: Client) -> None:
    hits = search(filled.user, "FOX")
    kinds = ["document", "file", "goal", "learning", "measured", "message", "note", "session", "skill", "step", "time"]
    assert sorted({hit.kind.value for hit in hits}) == kinds
    assert len(hits) == 14
    for hit in hits:
        assert client.get(hit.address.split("#")[0]).status_code == 200, hit.address
    (message,) = [hit for hit in hits if hit.kind == "message"]
    assert f"#turn-{message.id}" in message.address
    page = client.get("/search/?q=fox").text
    assert "One &lt;b&gt;<mark>fox</mark>&lt;/b&gt; by the river" in page
    assert "I saw a <mark>fox</mark> today &amp; it saw me." in page
    assert ">Sunday, 29 November 2026</a>" in page


def test_words_are_shown_without_the_marks_of_their_form(goal: Goal, client: Client) -> None:
    table = "# Animals\n\n| Who | What |\n|---|:--|\n| A **fox** | red-brown |\n\n- `two`, **three**."
    ThreadMessageFactory(thread=goal.thread, content=table)
    assert ">Animals Who What A <mark>fox</mark> red-brown two, three.<" in client.get("/search/?q=fox").text


def test_however_much_is_found_the_number_of_queries_is_the_same(filled: Goal) -> None:
    with CaptureQueriesContext(connection) as few:
        search(filled.user, "fox")
    turns = [ThreadMessageFactory(thread=filled.thread, content="A fox again.") for _ in range(SHOWN + 2)]
    ThreadMessageFactory(thread=filled.thread, content="A foxglove.", source="agent")
    with CaptureQueriesContext(connection) as many:
        hits = [hit.address for hit in search(filled.user, "fox") if hit.kind == "message"]
    assert (len(hits), len(many)) == (12, len(few))
    assert f"/goals/{filled.pk}/#turn-{turns[-1].pk}" in hits
    (late,) = [hit.address for hit in search(filled.user, "foxglove")]
    assert late == f"/goals/{filled.pk}/#turn-{turns[-1].pk}"
    ThreadMessageFactory.create_batch(SHOWN, thread=filled.thread, content="Else.")
    (late,) = [hit.address for hit in search(filled.user, "foxglove")]
    following = ThreadMessage.objects.filter(content="Else.").order_by("position")[0]
    assert late == f"/goals/{filled.pk}/?before={following.pk}#turn-{turns[-1].pk}"


@pytest.mark.parametrize(
    ("said", "notes"),
    [("hedge riv", 1), ("hedgehog wolf", 0), ("riverr", 0), ("Animols", 1), ("", 0), ("&|!:*()'\\", 0), ("fox\x00", 1)],
)
def test_all_words_by_their_beginning_or_names_that_look_alike(said: str, notes: int, filled: Goal) -> None:
    assert [kind for kind, _name in found(filled.user, said)].count("note") == notes


def test_nothing_of_others_and_nothing_of_helpers(filled: Goal) -> None:
    other = GoalFactory(title="Theirs", description="badger")
    create_note(other.thread, "badger", "badger")
    ThreadMessageFactory(thread=other.thread, content="badger")
    AgentHistoryFactory(thread=other.thread, title="badger", text="badger")
    LearningFactory(thread=other.thread, text="badger")
    write_document(place(other.user_id, other.thread_id, "USER"), "badger")
    files.write(other.thread_id, "badger.txt", iter([b"x"]), files.Hand(Writer.USER))
    Skill.objects.create(user=other.user, name="badger", description="badger", text="badger")
    schedules.add(other.thread, "every day 8:00", "badger")
    measuring.set_target(other.thread, "badger", 12, date(2099, 1, 1))
    measuring.measure(other.thread, 3, note="badger")
    PlanItem.objects.create(user=other.user, thread=other.thread, position=0, number="1", title="badger")
    assert found(filled.user, "badger") == []
    assert found(filled.user, "bodger") == []
    assert len(found(other.user, "badger")) == 12
    helper = AgentTaskFactory(parent=filled.thread)
    ThreadMessageFactory(thread=helper.thread, content="weasel")
    assert found(filled.user, "weasel") == []


def test_STO_03_what_is_too_much_for_an_index_is_kept_and_found_by_its_beginning(goal: Goal) -> None:
    words = [secrets.token_hex(16) for _ in range(6_000)]
    create_note(goal.thread, "Keys", " ".join(words))
    create_note(goal.thread, secrets.token_hex(100), secrets.token_hex(50_000))
    ThreadMessageFactory(thread=goal.thread, content=" ".join(words))
    assert {kind for kind, _name in found(goal.user, words[0])} == {"note", "message"}


def test_over_the_api(filled: Goal, client: Client) -> None:
    answer = client.get("/api/v1/search?q=hedgehog", headers=bearer(filled.user)).json()
    (hit,) = answer["results"]
    assert (hit["kind"], hit["name"]) == ("note", "Animals")
    assert hit["excerpt"] == "One <b>fox</b> by the river, and a hedgehog."


def test_a_user_searches_a_few_times_at_once(filled: Goal, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []

    def slow(user: User, words: Sequence[str]) -> list[Hit]:
        """Whoever searches does so again before it is done."""
        statuses.append(client.get("/search/?q=fox").status_code)
        api = Client().get("/api/v1/search?q=fox", headers=bearer(user))
        statuses.append(api.status_code)
        return []

    monkeypatch.setattr("goals.search.AT_ONCE", 1)
    monkeypatch.setattr("goals.search._found", slow)
    assert client.get("/search/?q=fox").status_code == 200
    assert statuses == [429, 429]
    monkeypatch.undo()
    assert client.get("/search/?q=fox").status_code == 200
