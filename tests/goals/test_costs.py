"""What was spent, as people, programs and spreadsheets see it: exact, by whatever it is asked for, nobody else's."""

import csv
import io
import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from unicodedata import normalize

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from agents.connecting import Given, connect_model
from agents.models import CallStatus, ModelCall, ModelPrice
from agents.services import assistant_of
from goals.models import Goal
from memory.models import AgentRun
from tests.factories import (
    AgentRunFactory,
    AgentTaskFactory,
    GoalFactory,
    ModelCallFactory,
    ModelPriceFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db
COSTS = "/api/v1/costs"
PRICES = "/api/v1/prices"
PAGE = "/settings/costs/"


@pytest.fixture
def user() -> User:
    user: User = UserFactory.create()
    assistant = assistant_of(user)
    assistant.welcomed = True
    assistant.save()
    return user


@pytest.fixture
def goal(user: User) -> Goal:
    return GoalFactory.create(user=user, title="Half marathon")


@pytest.fixture
def run(goal: Goal) -> AgentRun:
    return AgentRunFactory.create(thread=goal.thread)


@pytest.fixture
def client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def ask(api: Client, **query: str) -> Any:
    return api.get(COSTS, query).json()


def call(run: AgentRun, cost: str | None, at: datetime | None = None, **fields: Any) -> None:
    made = ModelCallFactory(run=run, cost=cost and Decimal(cost), **fields)
    if at:
        ModelCall.objects.filter(pk=made.pk).update(created_at=at)


def test_costs_by_model_name_what_is_unknown_and_show_what_came_from_the_cache(api: Client, run: AgentRun) -> None:
    tokens: dict[str, Any] = {"input_tokens": 1000, "cached_tokens": 600, "written_tokens": 300, "output_tokens": 10}
    call(run, "0.5", provider="openai", model="gpt-5", **tokens)
    call(run, "0.7", provider="openai", model="gpt-5", estimated=True, **tokens)
    call(run, None, provider="compatible", model="new-model-x")
    call(run, None, provider="openai", model="gpt-5", status=CallStatus.FAILED, output_tokens=3)
    call(run, None, provider="openai", model="gpt-5", status=CallStatus.STARTED)
    shown = ask(api)
    assert shown["by"] == "model"
    first, second = shown["results"]
    assert (first["provider"], first["model"], first["cost"]) == ("openai", "gpt-5", "1.2")
    counts = [first[name] for name in ("calls", "unpriced", "estimated", "partial")]
    assert counts == [3, 1, 1, 1]
    assert first["tokens"] == {"input": 2000, "cached": 1200, "written": 600, "output": 23}
    assert (second["model"], second["calls"], second["unpriced"], second["cost"]) == ("new-model-x", 1, 1, "0")
    assert (shown["total"]["cost"], shown["total"]["unpriced"]) == ("1.2", 2)


def test_costs_by_goal_hold_its_tasks_and_its_summaries(api: Client, user: User, goal: Goal, run: AgentRun) -> None:
    call(run, "1")
    task = AgentTaskFactory(parent=goal.thread, user=user)
    call(AgentRunFactory(thread=task.thread), "0.25")
    ModelCallFactory(run=None, thread=goal.thread, cost=Decimal("0.0001"))
    call(AgentRunFactory(thread=assistant_of(user).thread), "0.5")
    rows = ask(api, by="goal")["results"]
    assert [(row["goal"], row["title"], row["cost"], row["calls"]) for row in rows] == [
        (str(goal.pk), "Half marathon", "1.2501", 3),
        (None, "Assistant", "0.5", 1),
    ]


def test_costs_by_day_and_month_are_those_of_the_users_clock(api: Client, user: User, run: AgentRun) -> None:
    assistant = assistant_of(user)
    assistant.time_zone = "Pacific/Auckland"
    assistant.save()
    late = datetime(2026, 9, 30, 12, 30, tzinfo=UTC)  # already October there
    call(run, "1", at=late)
    call(run, "2", at=late - timedelta(hours=2))
    days = ask(api, by="day", since="2026-09-01", until="2026-10-31")["results"]
    assert [(row["day"], row["cost"]) for row in days] == [("2026-09-30", "2"), ("2026-10-01", "1")]
    months = ask(api, by="month", since="2026-09-01", until="2026-10-31")["results"]
    assert [(row["month"], row["cost"]) for row in months] == [("2026-09", "2"), ("2026-10", "1")]
    assert ask(api, since="2026-10-01", until="2026-10-01")["total"]["cost"] == "1", "both days are whole"
    assert ask(api, since="2026-09-30", until="2026-09-30")["total"]["cost"] == "2"


def test_costs_without_a_period_are_of_this_month(api: Client, run: AgentRun) -> None:
    call(run, "1")
    call(run, "2", at=timezone.now() - timedelta(days=40))
    shown = ask(api)
    assert shown["total"]["cost"] == "1"
    assert shown["since"].endswith("-01")


@pytest.mark.parametrize("by", ["model", "goal", "day", "month"])
def test_nobody_sees_what_others_spend(api: Client, goal: Goal, by: str) -> None:
    other = AgentRunFactory(thread=GoalFactory(title="Not yours").thread)
    call(other, "7", model="theirs")
    ModelCallFactory(run=None, thread=other.thread, cost=1)
    shown = ask(api, by=by)
    assert (shown["results"], shown["total"]["calls"]) == ([], 0)


@pytest.mark.parametrize(
    "query",
    [
        {"by": "user"},
        {"by": "x"},
        {"since": "yesterday"},
        {"until": "2026-13-01"},
        {"since": "2026-11-02", "until": "2026-11-01"},
        {"since": "0001-01-01"},
        {"until": "9999-12-31"},
    ],
)
def test_what_is_no_question_is_refused(api: Client, client: Client, query: dict[str, str]) -> None:
    assert api.get(COSTS, query).status_code == 400
    if "by" not in query:
        assert client.get(PAGE, query).status_code == 400
        assert client.get(f"{PAGE}costs.csv", query).status_code == 400


def test_cos_02_d_a_hundred_thousand_small_amounts_add_up_exactly_and_in_few_queries(
    api: Client, client: Client, run: AgentRun, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agents_modelcall (id, run_id, step, provider, model, status, cost, input_tokens)"
            " SELECT gen_random_uuid(), %s, g, 'openai', 'gpt-5', 'done', 0.0000375, 15"
            " FROM generate_series(1, 100000) g",
            [run.pk],
        )
    with django_assert_max_num_queries(12):
        total = ask(api)["total"]
    assert (total["cost"], total["calls"]) == ("3.75", 100_000)
    for by in ("goal", "day"):
        assert ask(api, by=by)["total"]["cost"] == "3.75"
    assert "$3.75" in client.get(PAGE).content.decode()


def test_the_page_names_unknown_costs_and_offers_to_set_a_price(client: Client, run: AgentRun) -> None:
    call(run, "1.2", provider="openai", model="gpt-5", cached_tokens=1234, input_tokens=5000)
    for _ in range(3):
        call(run, None, provider="compatible", model="new-model-x")
    page = client.get(PAGE).content.decode()
    assert "$1.20 + 3 calls of unknown cost" in page
    assert "data-num data-detail>1,234</td>" in page
    assert "1 call, 5,000 tokens in (1,234 cached, 0 written)" in page, "in one line, for narrow screens"
    assert "?by=model&amp;kind=compatible&amp;model=new-model-x" in page
    assert "compatible new-model-x" not in page
    assert "new-model-x (OpenAI-compatible server)" in page
    assert not re.search(r'<input [^>]*name="input"[^>]* autofocus', page)
    assert "data-num data-sum>$0.00<" not in page, "what is unknown is not shown as nothing"
    filled = client.get(PAGE, {"kind": "compatible", "model": "new-model-x"}).content.decode()
    assert 'value="new-model-x"' in filled
    assert re.search(r'<input [^>]*name="input"[^>]* autofocus', filled)
    by_goal = client.get(PAGE, {"by": "goal"}).content.decode()
    assert "Half marathon" in by_goal
    assert "new-model-x" in by_goal
    assert "data-num data-sum>$1.20<small>and 3 calls of unknown cost</small>" in by_goal
    assert "data-num data-sum>unknown<small>3 calls</small>" in page


def test_a_model_with_a_price_is_offered_none_when_a_call_of_it_broke_off(client: Client, run: AgentRun) -> None:
    call(run, None, provider="openai", model="gpt-5-mini", status=CallStatus.FAILED)
    call(run, None, provider="compatible", model="mine", status=CallStatus.FAILED)
    ModelPriceFactory(user=run.thread.user, kind="compatible", model="mine")
    page = client.get(PAGE).content.decode()
    assert page.count("broke off</span>") == 2
    assert "Set a price for" not in page


def test_calls_that_were_never_sent_are_none(api: Client, run: AgentRun) -> None:
    call(run, "0", status=CallStatus.CANCELLED, latency_ms=0)
    call(run, "0", status=CallStatus.CANCELLED)
    call(run, "0", status=CallStatus.CANCELLED, latency_ms=900)
    call(run, None, status=CallStatus.CANCELLED, latency_ms=0)
    call(run, "0")
    assert ask(api)["total"]["calls"] == 3


def test_days_and_months_are_said_as_elsewhere(client: Client, run: AgentRun) -> None:
    this_year = timezone.now().replace(month=1, day=5, hour=12)
    call(run, "1", this_year)
    call(run, "1", datetime(2024, 11, 21, 12, tzinfo=UTC))
    asked = {"since": "2024-11-01", "until": f"{this_year.year}-01-31"}
    by_day = client.get(PAGE, {"by": "day", **asked}).content.decode()
    assert ">21 Nov 2024<" in by_day
    assert ">5 Jan<" in by_day
    assert ">November 2024<" in client.get(PAGE, {"by": "month", **asked}).content.decode()


def test_the_page_says_what_was_estimated_and_what_broke_off(client: Client, run: AgentRun) -> None:
    call(run, "1", estimated=True)
    call(run, "1", status=CallStatus.FAILED, output_tokens=60)
    page = client.get(PAGE).content.decode()
    assert "1 call was not counted by its server" in page
    assert "1 call broke off" in page


def test_costs_go_into_a_spreadsheet_exactly_and_run_no_formula_there(client: Client, user: User) -> None:
    run = AgentRunFactory(thread=GoalFactory(user=user, title="=1+1").thread)
    call(run, "0.0000375", input_tokens=15, cached_tokens=5)
    call(run, None)
    answer = client.get(f"{PAGE}costs.csv", {"by": "goal"})
    assert answer["Content-Type"].startswith("text/csv")
    assert answer["Content-Disposition"].startswith('attachment; filename="costs-by-goal-')
    [row] = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["goal"], row["calls"], row["unpriced"]) == ("'=1+1", "2", "1")
    assert (row["input_tokens"], row["cached_tokens"], row["cost_usd"]) == ("15", "5", "0.0000375")


@pytest.mark.parametrize("title", ["=1+1", " =1+1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20A1", "x;=HYPERLINK(1);y"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_wherever_a_spreadsheet_parts_a_line_no_cell_is_a_formula(
    client: Client, user: User, title: str, delimiter: str
) -> None:
    call(AgentRunFactory(thread=GoalFactory(user=user, title=title).thread), "1")
    answer = client.get(f"{PAGE}costs.csv", {"by": "goal"}).content.decode()
    for row in csv.reader(io.StringIO(answer), delimiter=delimiter):
        assert not [cell for cell in row if normalize("NFKC", cell).strip().startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("spelling", ["0.10", "1e-1", 0.1, "$0.1"])
def test_cos_02_e_a_price_may_be_written_in_any_way(api: Client, user: User, spelling: object) -> None:
    body = {"kind": "openai", "model": "gpt-x", "input": spelling, "output": 1e-6, "cached": None}
    made = api.post(PRICES, body, content_type="application/json")
    assert made.status_code == 201
    assert (made.json()["input"], made.json()["output"], made.json()["cached"]) == ("0.1", "0.000001", None)
    stored = ModelPrice.objects.get(user=user)
    assert (stored.input, stored.output) == (Decimal("0.1"), Decimal("0.000001"))


@pytest.mark.parametrize("wrong", ["-1", "NaN", "Infinity", "", None, True, [], "1e-9", "1e9", "free", "1" * 5000])
def test_what_is_no_price_is_refused(api: Client, client: Client, wrong: object) -> None:
    body = {"kind": "openai", "model": "gpt-x", "input": wrong, "output": "1"}
    assert api.post(PRICES, body, content_type="application/json").status_code == 400
    assert client.post(f"{PAGE}prices/", {**body, "input": "" if wrong is None else str(wrong)}).status_code == 422
    assert not ModelPrice.objects.exists()


def test_prices_are_set_replaced_listed_and_removed(api: Client, client: Client, user: User) -> None:
    theirs = ModelPriceFactory.create()
    form = {
        "kind": "openrouter",
        "model": "some/model",
        "input": "1e-6",
        "output": "0.10",
        "cached": "",
        "written": "2",
    }
    assert client.post(f"{PAGE}prices/", form).status_code == 302
    assert client.post(f"{PAGE}prices/", {**form, "output": "0.20"}).status_code == 302
    [shown] = api.get(PRICES).json()["results"]
    assert (shown["model"], shown["input"], shown["output"]) == ("some/model", "0.000001", "0.2")
    assert (shown["cached"], shown["written"]) == (None, "2")
    page = client.get(PAGE).content.decode()
    assert "$0.000001" in page
    assert "$0.20</td>" in page
    assert client.post(f"{PAGE}prices/{theirs.pk}/delete/").status_code == 404
    assert client.post(f"{PAGE}prices/{shown['id']}/delete/").status_code == 302
    assert [price.pk for price in ModelPrice.objects.all()] == [theirs.pk]


@pytest.mark.django_db(transaction=True)
def test_the_prices_of_connected_models_say_where_they_come_from(client: Client, user: User) -> None:
    connect_model(user, "openai", Given("gpt-5-mini"))
    google = "https://generativelanguage.googleapis.com/v1beta/openai"
    connect_model(user, "compatible", Given("gemini-2.5-pro", google))
    connect_model(user, "compatible", Given("new-model-x", "https://models.example/v1"))
    page = client.get(PAGE).content.decode()
    assert "$0.25</td>" in page
    assert ">developers.openai.com</a>" in page, "where it is from, not the whole address"
    assert "genai-prices 0." in page
    assert "Above 200,000 tokens" in page
    assert "unknown</td>" in page
    client.post(f"{PAGE}prices/", {"kind": "compatible", "model": "new-model-x", "input": "7", "output": "8"})
    page = client.get(PAGE).content.decode()
    assert "$7.00</td>" in page
    assert "Set by you." in page
    assert "unknown</td>" not in page


def test_nobody_sets_prices_without_end(api: Client, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.prices.MOST_PRICES", 1)
    ModelPriceFactory(user=user, kind="openai", model="one")
    body = {"kind": "openai", "model": "one", "input": "1", "output": "1"}
    assert api.post(PRICES, body, content_type="application/json").status_code == 201
    refused = api.post(PRICES, {**body, "model": "two"}, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "too_many_prices")


def test_the_menu_leads_to_the_costs(client: Client) -> None:
    assert f'href="{PAGE}"' in client.get("/notes/").content.decode()


def test_days_are_whole_where_clocks_are_changed(api: Client, user: User, run: AgentRun) -> None:
    assistant = assistant_of(user)
    assistant.time_zone = "Europe/Vienna"
    assistant.save()
    vienna = zoneinfo.ZoneInfo("Europe/Vienna")
    call(run, "1", at=datetime(2026, 10, 25, 23, 30, tzinfo=vienna))
    call(run, "2", at=datetime(2026, 10, 26, 0, 10, tzinfo=vienna))
    assert ask(api, since="2026-10-25", until="2026-10-25")["total"]["cost"] == "1"
