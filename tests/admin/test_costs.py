"""The staff's page of costs: everybody's, exact, with what is unknown named; and prices for the whole server."""

import csv
import io
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from agents.models import ModelPrice
from agents.prices import prices_of
from agents.providers.base import Endpoint
from tests.factories import (
    AgentRunFactory,
    AgentTaskFactory,
    GoalFactory,
    ModelCallFactory,
    ModelPriceFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> User:
    return UserFactory.create(staff=True)


@pytest.fixture
def desk(staff: User) -> Client:
    client = Client()
    client.force_login(staff)
    return client


def spend(user: User, title: str, *costs: str | None) -> None:
    goal = GoalFactory(user=user, title=title)
    task = AgentTaskFactory(parent=goal.thread, user=user)
    for cost in costs:
        run = AgentRunFactory(thread=task.thread)
        ModelCallFactory(run=run, provider="openai", model="gpt-x", cost=cost and Decimal(cost), input_tokens=1000)
    ModelCallFactory(run=None, thread=goal.thread, provider="openai", model="gpt-x", cost=Decimal("0.01"))


def test_costs_are_summed_for_everybody_by_user(desk: Client) -> None:
    spend(UserFactory(email="ines@example.org"), "Graz", "1.20", None, None, None)
    spend(UserFactory(email="tom@example.org"), "Wien", "9")
    page = desk.get(reverse("admin:costs")).content.decode()
    assert "ines@example.org" in page
    assert "$1.21 + 3 calls of unknown cost" in page
    assert "$10.22 + 3 calls of unknown cost" in page
    assert page.index("tom@example.org") < page.index("ines@example.org"), "the dearest first"
    assert "gpt-x (OpenAI)" in page, "the models that something is unknown of"


@pytest.mark.parametrize("by", ["user", "model", "goal", "day", "month"])
def test_costs_of_everybody_come_as_a_file(desk: Client, by: str) -> None:
    spend(UserFactory(email="ines@example.org"), "Graz", "1.20", None)
    spend(UserFactory(email="tom@example.org"), "Graz", "0.0000375")
    lines = list(csv.DictReader(io.StringIO(desk.get(reverse("admin:costs"), {"by": by, "csv": "1"}).content.decode())))
    assert sum(Decimal(line["cost_usd"]) for line in lines) == Decimal("1.2200375")
    assert sum(int(line["unpriced"]) for line in lines) == 1
    if by == "goal":
        assert {line["goal"] for line in lines} == {"Graz (ines@example.org)", "Graz (tom@example.org)"}


def test_titles_of_others_are_looked_at_on_record(desk: Client, staff: User) -> None:
    spend(UserFactory(), "Private", "1")
    desk.get(reverse("admin:costs"))
    assert not LogEntry.objects.exists()
    assert "Private" in desk.get(reverse("admin:costs"), {"by": "goal"}).content.decode()
    assert LogEntry.objects.get(user=staff).change_message == "Costs viewed"


def test_costs_are_for_staff_who_may_see_calls() -> None:
    client = Client()
    client.force_login(UserFactory())
    assert client.get(reverse("admin:costs")).status_code == 302
    half = UserFactory(is_staff=True)
    client.force_login(half)
    assert client.get(reverse("admin:costs")).status_code == 403
    half.user_permissions.add(Permission.objects.get(codename="view_modelcall"))
    assert client.get(reverse("admin:costs")).status_code == 200


def test_a_bad_period_is_said_and_this_month_shown(desk: Client) -> None:
    page = desk.get(reverse("admin:costs"), {"since": "x"}).content.decode()
    assert "A day is written like" in page


@pytest.mark.django_db(transaction=True)
def test_staff_set_a_price_for_everybody_and_leave_those_of_users_alone(desk: Client) -> None:
    form = {"kind": "openai", "model": "gpt-x", "input": "3", "output": "15", "cached": "", "written": ""}
    assert desk.post(reverse("admin:agents_modelprice_add"), form).status_code == 302
    price = ModelPrice.objects.get()
    assert price.user is None
    found = prices_of(UserFactory().pk).of(Endpoint("openai"), "gpt-x")
    assert found
    assert (found.input, found.cached, found.source) == (Decimal(3), Decimal(3), "Set for this server.")
    assert desk.post(reverse("admin:agents_modelprice_add"), {**form, "model": "x", "input": "-1"}).status_code == 200
    assert ModelPrice.objects.count() == 1
    own = ModelPriceFactory()
    assert "everybody" in desk.get(reverse("admin:agents_modelprice_changelist")).content.decode()
    assert desk.post(reverse("admin:agents_modelprice_change", args=[own.pk]), form).status_code == 403
    assert desk.post(reverse("admin:agents_modelprice_delete", args=[own.pk]), {"post": "yes"}).status_code == 403
    assert desk.post(reverse("admin:agents_modelprice_delete", args=[price.pk]), {"post": "yes"}).status_code == 302
