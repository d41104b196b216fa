"""The activity page: what was done, why, and taking back much of it at once."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from goals.models import Goal
from memory.models import AgentRun, Note
from memory.notes import create_note, update_note
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    GoalFactory,
    ModelCallFactory,
    ThreadMessageFactory,
    UserFactory,
)
from tests.rewriting import rewriting
from tools.builtin.notes import image, record
from tools.models import AgentAction

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    user: User = UserFactory()
    return user


@pytest.fixture
def client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory(user=user, title="Learn Go")
    return goal


@pytest.fixture
def run(goal: Goal) -> AgentRun:
    run: AgentRun = AgentRunFactory(thread=goal.thread)
    ThreadMessageFactory(thread=goal.thread, run=run, content="Please plan my <b>week</b>")
    return run


def changed(run: AgentRun, note: Note, body: str) -> AgentAction:
    before = image(note)
    update_note(note, body=body)
    undo = record(note, before, image(note)).model_dump(mode="json")
    action: AgentAction = AgentActionFactory(
        run=run, tool="update_note", summary=note.title, undo=undo, finished_at=timezone.now()
    )
    return action


def test_what_was_done_is_listed_with_its_reason_and_the_way_back(client: Client, goal: Goal, run: AgentRun) -> None:
    action = changed(run, create_note(goal.thread, "Shoes", "v1"), "v2")
    AgentActionFactory(run=run, tool="search_notes", effect="pure", summary="only read")
    AgentActionFactory(run=run, tool="send_message", effect="idempotent", summary="only said")
    page = client.get("/activity/").content.decode()
    assert 'changed a note <b dir="auto">Shoes</b>' in page
    assert "because you wrote “Please plan my &lt;b&gt;week&lt;/b&gt;”" in page
    assert f"/actions/{action.pk}/undo" in page
    assert "only read" not in page
    assert "only said" not in page
    client.post(f"/actions/{action.pk}/undo", {"next": "/activity/"})
    page = client.get("/activity/").content.decode()
    assert (
        'data-state="undone"' in page,
        '<span class="who" dir="auto">You</span> undid <b dir="auto">“Changed a note Shoes”' in page,
        "in Learn Go</small>" in page,
    ) == (True, True, True)


def test_a_day_says_how_much_was_done_and_what_it_cost(client: Client, goal: Goal, run: AgentRun) -> None:
    AgentActionFactory.create_batch(52, run=run)
    yesterday = AgentActionFactory(run=run, summary="Long ago")
    with rewriting():
        AgentAction.objects.filter(pk=yesterday.pk).update(created_at=timezone.now() - timedelta(days=1))
    ModelCallFactory(run=run, cost=Decimal("0.15"))
    assert "52 actions, $0.15</span>" in client.get("/activity/").content.decode()
    ModelCallFactory(run=run, cost=None)
    assert "52 actions, $0.15 and more</span>" in client.get("/activity/").content.decode()
    assert "52 actions</span>" in client.get(f"/activity/?goal={goal.pk}").content.decode()
    (older,) = [part.split('"')[0] for part in client.get("/activity/").content.decode().split('href="?')[1:]]
    rest = client.get("/activity/?" + older).content.decode()
    assert ("52 actions, $0.15 and more</span>" in rest, "1 action</span>" in rest) == (True, True)


def test_a_goal_can_be_chosen_and_older_ones_follow(client: Client, user: User, goal: Goal, run: AgentRun) -> None:
    other = AgentRunFactory(thread=GoalFactory(user=user).thread)
    AgentActionFactory(run=other, summary="Elsewhere")
    for number in range(53):
        AgentActionFactory(run=run, summary=f"Number {number:02}")
    together = AgentAction.objects.filter(summary__in=["Number 01", "Number 02", "Number 03"])
    with rewriting():
        together.update(created_at=AgentAction.objects.get(summary="Number 02").created_at)
    page = client.get(f"/activity/?goal={goal.pk}").content.decode()
    assert [f"Number {number:02}" in page for number in range(53)] == [False] * 3 + [True] * 50
    assert ("Elsewhere" in page, "3 more" in page) == (False, True)
    (older,) = [part.split('"')[0] for part in page.split('href="?')[1:]]
    rest = client.get("/activity/?" + older.replace("&amp;", "&")).content.decode()
    assert [f"Number {number:02}" in rest for number in range(53)] == [True] * 3 + [False] * 50
    assert ("Older" in rest, "Elsewhere" in rest) == (False, False)


@pytest.mark.parametrize(
    "nonsense",
    [
        *("goal=x", "goal=%00", "after=x", "after=WzEsMl0", "after=" + "W" * 9000, "q=%00", "q=" + "w" * 300, "who=me"),
        *("kind=x", "state=x", "tool=x", "since=x", "since=0001-01-01", "until=9999-12-31", "until=0000-00-00"),
    ],
)
def test_an_address_that_asks_nonsense_is_answered_all_the_same(client: Client, run: AgentRun, nonsense: str) -> None:
    AgentActionFactory(run=run, summary="Number 1")
    assert "Number 1" in client.get(f"/activity/?{nonsense}").content.decode()


def test_a_whole_run_is_taken_back_after_a_look(client: Client, goal: Goal, run: AgentRun) -> None:
    mine, kept = create_note(goal.thread, "Shoes", "v1"), create_note(goal.thread, "Kept", "v1")
    for body in ("v2", "v3"):
        changed(run, mine, body)
    changed(run, kept, "v2")
    update_note(kept, body="a line of mine")
    address = f"/activity/undo/?run={run.pk}"
    page = client.get(address).content.decode()
    assert "<del>v3</del> <ins>v2</ins>" in page
    assert "<del>v2</del> <ins>v1</ins>" in page
    assert "Undo 2 actions" in page
    begun = timezone.localtime(run.created_at).strftime("%H:%M")
    assert f"Undo this run of {begun}?</h1>" in page
    assert "Changed a note “Kept”" in page.partition("This stays")[2]
    assert Note.objects.get(pk=mine.pk).body == "v3"
    told = client.post(address, follow=True).content.decode()
    assert "2 actions were taken back." in told
    assert ("1 action stays." in told, "“Kept”: It was changed since. (body)" in told) == (True, True)
    assert dict(Note.objects.values_list("title", "body")) == {"Shoes": "v1", "Kept": "a line of mine"}


def test_what_was_done_since_is_taken_back_with_what_helpers_did(client: Client, goal: Goal, run: AgentRun) -> None:
    note = create_note(goal.thread, "Shoes", "v1")
    changed(run, note, "v2")
    second = changed(run, note, "v3")
    with rewriting():
        AgentAction.objects.update(created_at=timezone.now() - timedelta(hours=1))  # all were asked for at once
    assert second.finished_at
    address = f"/activity/undo/?thread={goal.thread_id}&since={quote(second.finished_at.isoformat())}"
    page = client.get(address).content.decode()
    assert (
        "Undo 1 action" in page,
        f"Undo all since {timezone.localtime(second.finished_at):%H:%M}?</h1>" in page,
    ) == (True, True)
    long_ago = client.get("/activity/undo/?since=2020-01-31T12:30:00%2B00:00").content.decode()
    assert "Undo all since 31 January 2020, 12:30?</h1>" in long_ago
    client.post(address)
    assert Note.objects.get().body == "v2"


def test_only_ones_own_is_found(client: Client, goal: Goal, run: AgentRun) -> None:
    note = create_note(goal.thread, "Canary", "v1")
    changed(run, note, "v2")
    stranger = Client()
    stranger.force_login(UserFactory())
    since = quote(datetime(2020, 1, 1, tzinfo=UTC).isoformat())
    for address in (f"/activity/undo/?run={run.pk}", f"/activity/undo/?thread={goal.thread_id}&since={since}"):
        assert stranger.get(address).status_code == stranger.post(address).status_code == 404
    assert "Canary" not in stranger.get("/activity/").content.decode()
    assert "Canary" not in stranger.get(f"/activity/?goal={goal.pk}").content.decode()
    assert client.get("/activity/undo/").status_code == 404
    assert Note.objects.get(pk=note.pk).body == "v2"
