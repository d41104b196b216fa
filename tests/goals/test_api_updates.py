"""What is new, for devices: read from a cursor, which each device keeps (mission H11); and the feed (mission A13)."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from goals.models import Goal
from goals.updates import horizon
from memory.models import ThreadMessage
from tests.factories import (
    AgentRunFactory,
    ApprovalFactory,
    FeedItemFactory,
    GoalFactory,
    ModelCallFactory,
    ThreadMessageFactory,
    bearer,
)
from tests.goals.test_feed import happened

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory(user=user, title="Vienna half marathon")
    return goal


@pytest.fixture
def phone(user: User) -> Client:
    return Client(headers=bearer(user))


def test_decisions_failures_changes_and_cost_each_with_evidence(goal: Goal, phone: Client) -> None:
    said = happened(goal)
    run = AgentRunFactory(thread=goal.thread, finished_at=timezone.now())
    ThreadMessageFactory(thread=goal.thread, run=run, source="error", content="The model's server is away.")
    ThreadMessageFactory(thread=goal.thread, run=run, source="agent", content="Aside.", metadata={"interim": True})
    task = {"task": str(run.pk), "task_title": "Find a physio"}
    ThreadMessageFactory(thread=goal.thread, run=run, source="agent", content="Three have room.", metadata=task)
    ApprovalFactory(action__run=run)
    ApprovalFactory(action__run=run, action__step=1, state="rejected", reason="Too dear", decided_at=timezone.now())
    ModelCallFactory(run=run, cost="0.25")
    ModelCallFactory(run=run, cost=None)
    ModelCallFactory(run=run, cost=0, status="cancelled")  # never sent
    news = phone.get("/api/v1/updates").json()
    assert [update["kind"] for update in news["updates"]].count("asked") == 1
    kinds = {update["kind"]: update for update in news["updates"]}
    assert set(kinds) == {"asked", "decided", "failure", "answer", "report", "change"}
    assert kinds["answer"]["said"] == "The plan respects your knee"
    assert kinds["answer"]["evidence"] == f"/messages/{said.pk}/"
    assert kinds["report"]["said"] == "Find a physio"
    assert "Too dear" in kinds["decided"]["said"]
    assert kinds["change"]["said"] == "Created a note Plan"
    assert (news["cost"]["calls"], news["cost"]["known"], news["cost"]["unpriced"]) == (2, "0.250000000", 1)


def test_each_look_goes_on_where_the_one_before_ended(goal: Goal, phone: Client) -> None:
    happened(goal)
    first = phone.get("/api/v1/updates").json()
    assert first["updates"]
    assert phone.get("/api/v1/updates", {"since": first["until"]}).json()["updates"] == []
    happened(goal, "The shoes are here.")
    second = phone.get("/api/v1/updates", {"since": first["until"]}).json()
    assert {update["said"] for update in second["updates"]} == {"Created a note Plan", "The shoes are here"}


def test_each_device_keeps_its_own_place(goal: Goal, user: User, phone: Client) -> None:
    happened(goal)
    until = phone.get("/api/v1/updates").json()["until"]
    assert phone.post("/api/v1/updates/seen", {"until": until}, "application/json").json()["since"] == until
    assert phone.get("/api/v1/updates").json()["updates"] == []
    earlier = (horizon() - timedelta(days=9)).isoformat()
    assert phone.post("/api/v1/updates/seen", {"until": earlier}, "application/json").json()["since"] == until
    tablet = Client(headers=bearer(user))
    assert tablet.get("/api/v1/updates").json()["updates"]


def test_a_moment_that_lies_ahead_hides_nothing(goal: Goal, phone: Client) -> None:
    ahead = (horizon() + timedelta(days=9)).isoformat()
    phone.post("/api/v1/updates/seen", {"until": ahead}, "application/json")
    happened(goal)
    assert phone.get("/api/v1/updates").json()["updates"]


def test_a_moment_long_ago_is_a_year_ago(goal: Goal, phone: Client) -> None:
    assert phone.get("/api/v1/updates", {"since": "0001-01-01T00:00:00Z"}).status_code == 200
    phone.post("/api/v1/updates/seen", {"until": "0001-01-01T00:00:00Z"}, "application/json")
    happened(goal)
    assert phone.get("/api/v1/updates").json()["updates"]


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01T00:00:00Z", "1", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_moment_is_refused(since: str, phone: Client) -> None:
    assert phone.get("/api/v1/updates", {"since": since}).status_code == 400


def test_the_feed_is_read_rated_dismissed_and_talked_about(goal: Goal, phone: Client) -> None:
    item = FeedItemFactory(thread=goal.thread, title="Which mover?", kind="decision")
    (feed,) = phone.get("/api/v1/feeds").json()["results"]
    assert feed["items"][0]["title"] == "Which mover?"
    where = f"/api/v1/feed-items/{item.pk}"
    answer = phone.patch(where, {"rating": 1, "dismissed": True}, "application/json").json()
    assert answer["rating"] == 1
    assert answer["dismissed_at"]
    assert phone.patch(where, {"dismissed": False}, "application/json").json()["dismissed_at"] is None
    assert phone.patch(where, {"rating": 5}, "application/json").status_code == 400
    message = phone.post(f"{where}/discuss", {}, "application/json").json()
    assert phone.post(f"{where}/discuss", {}, "application/json").json()["id"] == message["id"]
    assert ThreadMessage.objects.filter(thread=goal.thread, content__contains="Which mover?").count() == 1
