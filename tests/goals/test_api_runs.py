"""Runs and what they did, through the API."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agents.services import assistant_of
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from tests.factories import AgentActionFactory, AgentRunFactory, AgentTaskFactory, GoalFactory

pytestmark = pytest.mark.django_db
RUNS = "/api/v1/runs"


def ids(api: Client, path: str) -> list[str]:
    return [row["id"] for row in api.get(path).json()["results"]]


def test_a_run_says_what_it_used(api: Client, goal: Goal) -> None:
    now = timezone.now()
    run = AgentRunFactory(
        thread=goal.thread,
        step=3,
        cost=Decimal("0.000420000"),
        input_tokens=10,
        output_tokens=5,
        cached_tokens=2,
        started_at=now,
        finished_at=now + timedelta(seconds=2),
    )
    shown = api.get(f"{RUNS}/{run.pk}").json()
    assert (shown["goal"], shown["status"], shown["trigger"]) == (str(goal.pk), "succeeded", "message")
    assert (shown["iterations"], shown["cost"], shown["error"], shown["reason"]) == (3, "0.00042", "", "")
    assert shown["tokens"] == {"input": 10, "output": 5, "cached": 2, "written": 0}
    assert shown["started_at"].endswith("Z")


def test_a_helpers_run_says_whose_it_is(api: Client, goal: Goal) -> None:
    task = AgentTaskFactory(parent=goal.thread, user=goal.user, title="Trail shoes")
    run = AgentRunFactory(thread=task.thread)
    AgentRunFactory(thread=GoalFactory(user=goal.user).thread)
    [shown] = api.get(f"{RUNS}?goal={goal.pk}").json()["results"]
    assert (shown["id"], shown["goal"]) == (str(run.pk), str(goal.pk))
    assert shown["task"] == {"id": str(task.pk), "title": "Trail shoes"}
    own = AgentTaskFactory(parent=assistant_of(goal.user).thread, user=goal.user, title="Socks")
    shown = api.get(f"{RUNS}/{AgentRunFactory(thread=own.thread).pk}").json()
    assert (shown["goal"], shown["task"]["title"]) == (None, "Socks")


def test_an_unknown_cost_is_null_and_not_zero(api: Client, goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread, cost=1, cost_known=False)
    assert api.get(f"{RUNS}/{run.pk}").json()["cost"] is None


def test_runs_of_all_agents_of_a_user_newest_first(api: Client, user: User, goal: Goal) -> None:
    old = AgentRunFactory(thread=goal.thread)
    new = AgentRunFactory(thread=assistant_of(user).thread)
    AgentRunFactory()
    assert ids(api, RUNS) == [str(new.pk), str(old.pk)]
    assert api.get(f"{RUNS}/{new.pk}").json()["goal"] is None


def test_runs_by_goal_and_by_status(api: Client, user: User, goal: Goal) -> None:
    failed = AgentRunFactory(thread=goal.thread, status=RunStatus.FAILED)
    AgentRunFactory(thread=goal.thread)
    elsewhere = AgentRunFactory(thread=GoalFactory(user=user).thread)
    foreign = GoalFactory()
    AgentRunFactory(thread=foreign.thread)
    assert len(ids(api, f"{RUNS}?goal={goal.pk}")) == 2
    assert ids(api, f"{RUNS}?status=failed") == [str(failed.pk)]
    assert ids(api, f"{RUNS}?status=failed&goal={elsewhere.thread.goals_goal.pk}") == []
    assert ids(api, f"{RUNS}?goal={foreign.pk}") == ids(api, f"{RUNS}?goal={uuid4()}") == []


def test_a_page_keeps_its_filter(api: Client, goal: Goal) -> None:
    runs = [AgentRunFactory(thread=goal.thread, status=RunStatus.FAILED) for _ in range(3)]
    AgentRunFactory(thread=goal.thread)
    page = api.get(f"{RUNS}?status=failed&limit=2").json()
    assert ids(api, page["next"]) == [str(runs[0].pk)]


@pytest.mark.parametrize(("name", "value"), [("goal", "x"), ("status", "gone")])
def test_filters_that_are_none(api: Client, name: str, value: str) -> None:
    answer = api.get(RUNS, {name: value})
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [name])


def test_what_a_run_did_in_order(api: Client, goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread)
    places = [(2, 0), (1, 1), (1, 0)]
    made = {place: AgentActionFactory(run=run, step=place[0], position=place[1]) for place in places}
    AgentActionFactory()
    path: str | None = f"{RUNS}/{run.pk}/actions?limit=2"
    seen: list[str] = []
    while path:
        page = api.get(path).json()
        seen += [action["id"] for action in page["results"]]
        path = page["next"]
    assert seen == [str(made[place].pk) for place in sorted(places)]
    action = api.get(f"{RUNS}/{run.pk}/actions").json()["results"][0]
    assert (action["tool"], action["status"], action["arguments"]) == ("create_note", "done", {"title": "Shoes"})
    assert not {"undo", "fence", "call_id", "user", "thread"} & set(action)


def test_stopping_a_run_that_has_ended_changes_nothing(api: Client, goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread)
    answer = api.post(f"{RUNS}/{run.pk}/stop", content_type="application/json")
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")


@pytest.mark.django_db(transaction=True)
def test_a_queued_run_is_on_its_way_to_an_end_however_often_it_is_stopped(goal: Goal, api: Client) -> None:
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.QUEUED)
    goal.thread.live_run = run.pk
    goal.thread.save()
    for _ in range(2):
        answer = api.post(f"{RUNS}/{run.pk}/stop", content_type="application/json")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelling")
    assert AgentRun.objects.get(pk=run.pk).status == RunStatus.CANCELLING


@pytest.mark.django_db(transaction=True)
def test_a_run_that_waits_for_its_model_can_be_tried_now_and_any_other_is_left_alone(api: Client, goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.RETRY_WAIT, due_at=timezone.now() + timedelta(minutes=1))
    for _ in range(2):
        answer = api.post(f"{RUNS}/{run.pk}/retry", content_type="application/json")
        assert (answer.status_code, answer.json()["status"]) == (200, "queued")
    ended = AgentRunFactory(thread=GoalFactory.create(user=goal.user).thread)
    assert api.post(f"{RUNS}/{ended.pk}/retry", content_type="application/json").json()["status"] == "succeeded"


def test_a_long_list_costs_as_many_queries_as_a_short_one(
    api: Client, goal: Goal, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(20):
        AgentRunFactory(thread=goal.thread)
    api.get(RUNS)
    with django_assert_num_queries(1):  # token and user are a prepared statement, not counted
        assert len(api.get(RUNS).json()["results"]) == 20
