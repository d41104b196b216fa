"""Goals and notes through the API."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from goals.models import Goal
from memory.models import Author, Note, Thread
from tests.factories import GoalFactory, NoteFactory, UserFactory, bearer

pytestmark = pytest.mark.django_db
GOALS = "/api/v1/goals"


@pytest.fixture
def user() -> User:
    return UserFactory.create()


@pytest.fixture
def api(client: Client, user: User) -> Client:
    """A client with the user's token that speaks JSON."""
    client.defaults["HTTP_AUTHORIZATION"] = bearer(user)["Authorization"]
    return client


def send(method: Any, path: str, body: Any) -> Any:
    return method(path, body, content_type="application/json")


def every(api: Client, path: str | None) -> Any:
    """All results of a list, and how many there were on each page."""
    results: list[dict[str, Any]] = []
    sizes: list[int] = []
    while path:
        page = api.get(path).json()
        assert set(page) == {"results", "next"}
        results += page["results"]
        sizes.append(len(page["results"]))
        path = page["next"]
    return results, sizes


def test_a_goal_is_created_read_changed_and_deleted(api: Client) -> None:
    made = send(api.post, GOALS, {"title": "  Run  a half marathon ", "description": "In May"})
    assert made.status_code == 201
    goal = made.json()
    assert str(UUID(goal["id"])) == goal["id"]
    assert (goal["title"], goal["status"], goal["live_run"]) == ("Run a half marathon", "waiting", None)
    path = f"{GOALS}/{goal['id']}"
    assert api.get(path).json() == goal
    changed = send(api.patch, path, {"description": "In June"})
    assert changed.json() == {**goal, "description": "In June"}
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404
    assert not Thread.objects.filter(kind="goals.goal").exists()


def test_a_goal_is_put_away_and_taken_out_again(api: Client, user: User) -> None:
    path = f"{GOALS}/{GoalFactory(user=user).pk}"
    assert send(api.patch, path, {"status": "archived"}).json()["status"] == "archived"
    assert send(api.patch, path, {"status": "archived"}).json()["status"] == "archived"
    assert send(api.patch, path, {"status": "waiting"}).json()["status"] == "waiting"


@pytest.mark.parametrize("status", ["working", "", "gone", None, 1])
def test_other_states_cannot_be_set(api: Client, user: User, status: Any) -> None:
    answer = send(api.patch, f"{GOALS}/{GoalFactory(user=user).pk}", {"status": status})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["status"]


def test_no_field_of_the_model_can_be_set_that_is_not_offered(api: Client, user: User) -> None:
    goal = GoalFactory(user=user)
    before = Goal.objects.filter(pk=goal.pk).values().get()
    offered = {"title", "description"}
    for field in Goal._meta.get_fields():
        for name in {field.name, getattr(field, "attname", field.name)} - offered:
            answer = send(api.patch, f"{GOALS}/{goal.pk}", {name: str(UserFactory().pk)})
            assert (name, answer.status_code) == (name, 400)
    assert Goal.objects.filter(pk=goal.pk).values().get() == before


def test_no_field_of_a_note_can_be_set_that_is_not_offered(api: Client, user: User) -> None:
    note = NoteFactory(thread=GoalFactory(user=user).thread)
    before = Note.objects.filter(pk=note.pk).values().get()
    for field in Note._meta.get_fields():
        for name in {field.name, getattr(field, "attname", field.name)} - {"title", "body"}:
            for method, path in ((api.patch, f"/api/v1/notes/{note.pk}"), (api.post, f"{GOALS}/{_goal(note)}/notes")):
                answer = send(method, path, {"title": "x", name: "agent"})
                assert (name, answer.status_code) == (name, 400)
                assert name in answer.json()["error"]["fields"]
    assert Note.objects.filter(pk=note.pk).values().get() == before


def _goal(note: Note) -> Any:
    return Goal.objects.get(thread=note.thread).pk


def test_lists_come_in_pages_newest_first_and_miss_nothing(api: Client, user: User) -> None:
    goals = [GoalFactory(user=user) for _ in range(7)]
    GoalFactory()
    results, sizes = every(api, f"{GOALS}?limit=3")
    assert [goal["id"] for goal in results] == [str(goal.pk) for goal in reversed(goals)]
    assert sizes == [3, 3, 1]


def test_a_page_neither_repeats_nor_hides_when_rows_come_and_go(api: Client, user: User) -> None:
    goals = [GoalFactory(user=user) for _ in range(6)]
    first = api.get(f"{GOALS}?limit=3").json()
    GoalFactory(user=user)
    goals[3].thread.delete()
    rest = api.get(first["next"]).json()
    assert [goal["id"] for goal in rest["results"]] == [str(goals[1].pk), str(goals[0].pk)] or [
        goal["id"] for goal in rest["results"]
    ] == [str(goal.pk) for goal in (goals[2], goals[1], goals[0])]


def test_next_is_a_relative_address_or_null(api: Client, user: User) -> None:
    for _ in range(2):
        GoalFactory(user=user)
    assert api.get(f"{GOALS}?limit=1").json()["next"].startswith("/api/v1/goals?")
    assert api.get(f"{GOALS}?limit=2").json()["next"] is None


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "", "1e2", "٣", "9" * 5000, "00000000199999"])
def test_limits_that_are_none(api: Client, limit: str) -> None:
    answer = api.get(GOALS, {"limit": limit})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["limit"]


@pytest.mark.parametrize("cursor", ["x", "e30", "W10", "WyJ4Il0", "bnVsbA", "W251bGxd", "é", "W3t9XQ"])
def test_cursors_that_are_none(api: Client, cursor: str) -> None:
    answer = api.get(GOALS, {"cursor": cursor})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["cursor"]


def test_text_that_cannot_be_stored_is_replaced(api: Client) -> None:
    body = b'{"title": "a\\u0000b\\ud800c", "description": "\\ud83d\\ude00"}'
    goal = api.post(GOALS, body, content_type="application/json").json()
    assert goal["title"] == "a�b�c"
    assert goal["description"] == "😀"


def test_a_note_is_written_read_changed_and_deleted(api: Client, user: User) -> None:
    notes = f"{GOALS}/{GoalFactory(user=user).pk}/notes"
    made = send(api.post, notes, {"title": "Shoes", "body": "size 43"})
    assert made.status_code == 201
    note = made.json()
    assert note["author"] == Author.USER
    path = f"/api/v1/notes/{note['id']}"
    assert api.get(path).json() == note
    assert api.get(notes).json()["results"] == [note]
    changed = send(api.patch, path, {"body": "size 44"}).json()
    assert (changed["title"], changed["body"]) == ("Shoes", "size 44")
    assert changed["updated_at"] > note["updated_at"]
    assert api.delete(path).status_code == 204
    assert api.get(notes).json()["results"] == []


def test_notes_of_one_goal_are_not_shown_in_another(api: Client, user: User) -> None:
    NoteFactory(thread=GoalFactory(user=user).thread)
    assert api.get(f"{GOALS}/{GoalFactory(user=user).pk}/notes").json()["results"] == []


@pytest.mark.parametrize("body", [{"title": ""}, {"title": "x" * 201}, {"title": "x", "body": "x" * 200_001}])
def test_notes_that_are_refused(api: Client, user: User, body: Any) -> None:
    answer = send(api.post, f"{GOALS}/{GoalFactory(user=user).pk}/notes", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid"


def test_a_long_list_costs_as_many_queries_as_a_short_one(
    api: Client, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(30):
        GoalFactory(user=user)
    api.get(GOALS)
    with django_assert_num_queries(1):  # goals with their threads; token and user are a prepared statement, not counted
        assert len(api.get(GOALS).json()["results"]) == 30
