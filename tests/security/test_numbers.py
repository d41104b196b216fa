"""T16: a model may write any number into a call's arguments, and PostgreSQL gives 1e30 back with all its digits."""

import pytest
from django.test import Client
from psycopg.types.json import Jsonb

from goals.models import Goal
from memory import pool
from memory.models import AgentHistory, MessageType, RunStatus, Source
from tests.factories import (
    AgentActionFactory,
    AgentHistoryFactory,
    AgentRunFactory,
    ApprovalFactory,
    GoalFactory,
    ThreadMessageFactory,
    bearer,
)

pytestmark = pytest.mark.django_db(transaction=True)

HUGE = {"title": 1e30, "many": [10**25, {"deep": -(10**40)}]}
DIGITS = "1" + 30 * "0"


@pytest.fixture
def goal() -> Goal:
    """A conversation in which a call with such arguments waits, beside one that ran."""
    goal: Goal = GoalFactory.create()
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.WAITING_APPROVAL)
    ran, waits = AgentActionFactory(run=run, arguments=HUGE), ApprovalFactory(action__run=run, action__arguments=HUGE)
    for action in (ran, waits.action):
        cell = {"source": Source.AGENT, "message_type": MessageType.TOOL, "metadata": {"action": str(action.pk)}}
        ThreadMessageFactory(thread=goal.thread, run=run, **cell)
    block = {"type": "tool_use", "id": "call_1", "name": "create_note", "arguments": HUGE}
    AgentHistoryFactory(thread=goal.thread, entries=[{"seq": 1, "role": "assistant", "blocks": [block]}])
    return goal


def test_devices_read_what_was_called(goal: Goal) -> None:
    client, headers = Client(raise_request_exception=False), bearer(goal.user)
    session = AgentHistory.objects.get(thread=goal.thread)
    places = [f"runs/{goal.thread.runs.get().pk}/actions", "approvals", f"goals/{goal.pk}/messages"]
    answers = {
        place: client.get(f"/api/v1/{place}", headers=headers) for place in [*places, f"sessions/{session.pk}", "runs"]
    }
    assert {place: answer.status_code for place, answer in answers.items()} == dict.fromkeys(answers, 200)
    for place in places[:2]:
        assert DIGITS in answers[place].content.decode()


def test_pages_show_what_was_called(goal: Goal) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(goal.user)
    page = client.get(f"/goals/{goal.pk}/")
    assert page.status_code == 200
    assert DIGITS in page.content.decode()
    places = [f"/actions/{action.pk}/" for action in goal.thread.actions.all()]
    session = AgentHistory.objects.get(thread=goal.thread)
    assert [client.get(place).status_code for place in [*places, f"/sessions/{session.pk}/", "/jobs/"]] == [200] * 4


def test_what_the_database_has_given_it_takes_back(goal: Goal) -> None:
    arguments = goal.thread.actions.all()[0].arguments
    written = pool.execute("SELECT (%(given)s::jsonb)->>'title'", {"given": Jsonb(arguments)})
    assert list(written) == [(DIGITS,)]


def test_what_cannot_be_answered_is_said_in_the_shape_of_the_api(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it fails outside of the view: while the answer is written, or in a middleware."""

    def fail(*_: object, **__: object) -> bytes:
        raise TypeError("cannot be written")

    monkeypatch.setattr("agents.api.base.Json.render", fail)
    answer = Client(raise_request_exception=False).get("/api/v1/runs", headers=bearer(goal.user))
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "server_error")
