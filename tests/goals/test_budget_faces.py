"""Budgets in the browser and over the API: set, seen, raised, removed, and nobody else's."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.budgets.models import Budget, Window
from agents.budgets.services import allow_more, set_budget
from agents.services import assistant_of
from goals.models import Goal
from memory.metadata import MessageMetadata
from memory.models import AgentRun, RunStatus, Source
from tests.factories import AgentRunFactory, GoalFactory, ThreadMessageFactory, UserFactory, bearer, nobody

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def goal() -> Goal:
    return GoalFactory(title="Vienna half")


@pytest.fixture
def browser(goal: Goal) -> Client:
    client = Client()
    client.force_login(goal.user)
    return client


def call(goal: Goal, method: str, path: str, body: object = None) -> tuple[int, Any]:
    made = Client().generic(
        method, f"/api/v1/{path}", _json(body), content_type="application/json", headers=bearer(goal.user)
    )
    return made.status_code, made.json() if made.content else None


def _json(body: object) -> bytes:
    return b"" if body is None else orjson.dumps(body)


def paused(goal: Goal, budget: Budget) -> AgentRun:
    """A run of the goal that waits for that budget, and says so."""
    run: AgentRun = AgentRunFactory(thread=goal.thread, status=RunStatus.WAITING_BUDGET)
    said = MessageMetadata(reason="budget", budget=budget.pk, more=budget.takes_more, retryable=False).stored()
    ThreadMessageFactory(thread=goal.thread, run=run, content="Go on")
    ThreadMessageFactory(thread=goal.thread, run=run, source=Source.ERROR, content="Spent.", metadata=said)
    return run


def welcomed(goal: Goal) -> None:
    agent = assistant_of(goal.user)
    agent.welcomed = True
    agent.save()


def test_the_limit_of_a_month_is_seen_beside_what_was_spent(goal: Goal, browser: Client) -> None:
    welcomed(goal)
    AgentRunFactory(thread=goal.thread, cost=Decimal("4.10"))
    for path in ("/", "/jobs/"):
        assert "of $" not in browser.get(path).content.decode(), "no limit, no bar"
    budget = set_budget(goal.user, Window.MONTH, Decimal(20), None)
    home, jobs = (browser.get(path).content.decode() for path in ("/", "/jobs/"))
    assert home.count("of $20.00") == 2
    assert jobs.count("of $20.00") == 1
    assert '<progress value="20" max="100" aria-label="20 percent' in jobs
    AgentRunFactory(thread=goal.thread, cost=Decimal(12))
    assert '<progress value="80" max="100" data-tone="ask"' in browser.get("/jobs/").content.decode()
    allow_more(budget)
    assert "of $21.00" in browser.get("/jobs/").content.decode()
    Budget.objects.update(begins=timezone.now() - timedelta(days=70))
    assert "of $20.00" in browser.get("/jobs/").content.decode(), "what was added was for that month"
    set_budget(goal.user, Window.MONTH, None, 1_000)
    assert "of $" not in browser.get("/jobs/").content.decode(), "tokens are not dollars"


def test_a_goal_shows_its_limits(goal: Goal, browser: Client) -> None:
    path = f"/goals/{goal.pk}/settings/"
    set_budget(goal.user, Window.MONTH, Decimal(20), None)
    assert "counts for your limit of $20.00 a month" in browser.get(path).content.decode()
    set_budget(goal.user, Window.MONTH, Decimal(5), None, GoalFactory(user=goal.user).thread)
    budget = set_budget(goal.user, Window.MONTH, Decimal(7), None, goal.thread)
    set_budget(goal.user, Window.RUN, Decimal("0.5"), None, goal.thread)
    Budget.objects.filter(pk=budget.pk).update(spent=Decimal("6.3"))
    page = browser.get(path).content.decode()
    assert f'<b dir="auto">{goal.title}</b> may spend $7.00 a month.' in page
    assert "may spend $0.50 in each run." in page
    assert "$5.00" not in page
    assert 'value="90" max="100" data-tone="ask"' in page


def test_a_budget_is_set_seen_and_removed_in_the_settings(goal: Goal, browser: Client) -> None:
    answer = browser.post("/settings/budget/", {"goal": goal.pk, "window": "month", "money": "20"}, follow=True)
    budget = Budget.objects.get()
    assert (budget.thread, budget.money, budget.tokens) == (goal.thread, Decimal(20), None)
    Budget.objects.update(begins=timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0))
    Budget.objects.update(spent=Decimal("17.123"))
    page = browser.get("/settings/budget/").content.decode()
    assert f'<b dir="auto">{goal.title}</b> may spend $20.00 a month.' in page
    assert "$17.12" in page
    assert 'value="86" max="100" data-tone="ask"' in page
    assert answer.redirect_chain
    browser.post(f"/settings/budget/{budget.pk}/delete/")
    assert not Budget.objects.exists()


def test_each_limit_of_a_budget_has_its_own_share_and_can_be_changed(goal: Goal, browser: Client) -> None:
    budget = set_budget(goal.user, Window.TOTAL, Decimal("0.005"), 4_000_000, goal.thread)
    Budget.objects.update(spent=Decimal("0.001"), spent_tokens=3_912_345)
    page = browser.get("/settings/budget/").content.decode()
    assert "$0.005" in page
    assert "3,912,345" in page
    assert "of 4,000,000 tokens" in page
    assert 'value="20" max="100"' in page
    assert 'value="98" max="100" data-tone="ask"' in page
    filled = browser.get("/settings/budget/", {"budget": str(budget.pk)}).content.decode()
    assert "Change a budget" in filled
    assert 'value="0.005"' in filled
    assert 'value="4000000"' in filled
    assert f'value="{goal.pk}" selected' in filled
    assert "Change a budget" not in browser.get("/settings/budget/", {"budget": "x"}).content.decode()


def test_a_new_limit_replaces_what_was_added(goal: Goal, browser: Client) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal("0.01"), None)
    browser.post(f"/settings/budget/{budget.pk}/more/")
    assert "$0.0100 a month, and $1.00 more for now" in browser.get("/settings/budget/").content.decode()
    browser.post("/settings/budget/", {"window": "month", "money": "0.005"})
    budget.refresh_from_db()
    assert (budget.money, budget.extra) == (Decimal("0.005"), Decimal(0))


@pytest.mark.parametrize(
    "given", [{"window": "month"}, {"window": "week", "money": "1"}, {"window": "day", "money": "-1"}]
)
def test_a_wrong_budget_is_refused_on_the_form(goal: Goal, browser: Client, given: dict[str, str]) -> None:
    answer = browser.post("/settings/budget/", given)
    assert answer.status_code == 422
    assert not Budget.objects.exists()


def test_the_chat_says_that_a_run_waits_and_offers_a_dollar(goal: Goal, browser: Client, rung: list[UUID]) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    run = paused(goal, budget)
    page = browser.get(f"/goals/{goal.pk}/").content.decode()
    assert "Budget spent" in page
    assert "Allow $1 more" in page
    assert "Spent." in browser.get("/jobs/").content.decode()
    browser.post(f"/settings/budget/{budget.pk}/more/", headers={"HX-Request": "true"})
    budget.refresh_from_db()
    run.refresh_from_db()
    assert budget.extra == 1
    assert run.status == RunStatus.QUEUED
    assert rung == [run.pk]
    page = browser.get(f"/goals/{goal.pk}/").content.decode()
    assert "Allow $1 more" not in page
    assert "Waited for its budget" in page


@pytest.mark.parametrize(("window", "money", "tokens"), [("month", None, 500), ("run", Decimal(1), None)])
def test_nothing_is_added_to_tokens_or_to_every_run(
    goal: Goal, browser: Client, window: str, money: Decimal | None, tokens: int | None
) -> None:
    budget = set_budget(goal.user, window, money, tokens)
    paused(goal, budget)
    page = browser.get(f"/goals/{goal.pk}/").content.decode()
    assert "Raise the limit" in page
    assert "Allow $1 more" not in page
    answer = browser.post(f"/settings/budget/{budget.pk}/more/", follow=True)
    assert "Nothing can be added to this budget" in answer.content.decode()
    status, refused = call(goal, "POST", f"budgets/{budget.pk}/more", {"money": "0.5"})
    assert (status, refused["error"]["code"]) == (400, "not_possible")
    budget.refresh_from_db()
    assert budget.extra == 0


def test_budgets_over_the_api(goal: Goal, rung: list[UUID]) -> None:
    status, made = call(goal, "POST", "budgets", {"window": "day", "money": "2.5", "thread": str(goal.thread_id)})
    assert status == 200
    assert (made["money"], made["spent"], made["thread"]) == ("2.5", "0", str(goal.thread_id))
    run = paused(goal, Budget.objects.get())
    assert call(goal, "GET", "budgets")[1]["results"] == [made]
    status, more = call(goal, "POST", f"budgets/{made['id']}/more", {"money": "0.5"})
    assert (status, more["extra"]) == (200, "0.5")
    assert rung == [run.pk]
    status, changed = call(goal, "PATCH", f"budgets/{made['id']}", {"tokens": 1000})
    assert (status, changed["money"], changed["tokens"]) == (200, "2.5", 1000)
    assert call(goal, "DELETE", f"budgets/{made['id']}")[0] == 204
    assert call(goal, "GET", f"budgets/{made['id']}")[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        {"window": "day"},
        {"window": "day", "money": None, "tokens": None},
        {"window": "never", "money": "1"},
        {"window": "day", "money": "NaN"},
        {"window": "day", "money": "1e400"},
        {"window": "day", "tokens": 10**17},
        {"window": "day", "money": "1", "thread": str(nobody())},
        {"window": "day", "money": "1", "limit": 2},
    ],
)
def test_a_wrong_budget_is_refused_by_the_api(goal: Goal, body: dict[str, object]) -> None:
    status, answer = call(goal, "POST", "budgets", body)
    assert status == 400, answer
    assert not Budget.objects.exists()


def test_nobody_else_s_budget_can_be_seen_or_changed(goal: Goal, browser: Client) -> None:
    other = GoalFactory(user=UserFactory())
    budget = set_budget(other.user, Window.MONTH, Decimal(1), None)
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/more")):
        assert call(goal, method, f"budgets/{budget.pk}{path}", {})[0] == 404
    assert call(goal, "GET", "budgets")[1]["results"] == []
    assert browser.post(f"/settings/budget/{budget.pk}/more/").status_code == 404
    assert browser.post(f"/settings/budget/{budget.pk}/delete/").status_code == 404
    assert browser.post("/settings/budget/", {"goal": other.pk, "window": "day", "money": 1}).status_code == 422
    assert call(goal, "POST", "budgets", {"window": "day", "money": "1", "thread": str(other.thread_id)})[0] == 400
    assert Budget.objects.get() == budget


def test_more_and_more_is_no_error(goal: Goal) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    for _ in range(11):
        status, shown = call(goal, "POST", f"budgets/{budget.pk}/more", {"money": "10000000"})
        assert (status, shown["extra"]) == (200, "10000000")


@pytest.mark.parametrize("path", ["/settings/budget/", "/api/v1/budgets"])
def test_ten_budgets_ask_the_database_no_more_often_than_one(goal: Goal, browser: Client, path: str) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(path, headers=bearer(goal.user)).status_code == 200
        return len(queries)

    set_budget(goal.user, Window.MONTH, Decimal(1), None)
    asked()
    once = asked()
    for _ in range(9):
        set_budget(goal.user, Window.MONTH, Decimal(1), None, GoalFactory(user=goal.user).thread)
    assert asked() <= once + 1
