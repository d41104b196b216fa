"""What a person lets an agent do: each tool off, asked about, or by itself; and whose texts it has read."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.engine.presence import tell_of_commands
from agents.services import assistant_of
from goals.models import Goal
from memory.models import Thread
from tests.factories import GoalFactory, bearer
from tests.world import TOOLS
from tools.registry import all_tools

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tools(settings: Any) -> Any:
    settings.AGENT_TOOLS = [*settings.AGENT_TOOLS, *TOOLS]
    all_tools.cache_clear()
    yield
    all_tools.cache_clear()


@pytest.fixture
def goal(client: Client) -> Goal:
    goal: Goal = GoalFactory.create()
    client.force_login(goal.user)
    return goal


def save(client: Client, goal: Goal, **given: str) -> str:
    """Save the page of a goal's settings; it is shown again."""
    return client.post(f"/goals/{goal.pk}/settings/", {"title": goal.title} | given, follow=True).text


def test_tools_of_a_goal_are_set_on_its_page(client: Client, goal: Goal) -> None:
    page = client.get(f"/goals/{goal.pk}/settings/").content.decode()
    assert 'name="mode-create_note" value="auto" checked' in page
    assert 'name="mode-send_email" value="ask" checked' in page
    assert 'name="mode-send_email" value="auto" disabled' in page
    save(client, goal, **{"mode-create_note": "ask", "mode-send_email": "off", "mode-post": "auto"})
    goal.refresh_from_db()
    assert goal.modes == {"create_note": "ask", "send_email": "off"}, "what is usual is not kept"
    save(client, goal, **{"mode-send_email": "ask"})
    goal.refresh_from_db()
    assert goal.modes == {"create_note": "ask"}


@pytest.mark.parametrize("staff", [True, False])
def test_a_tool_that_is_not_set_up_is_no_choice_and_the_page_says_why(
    client: Client, goal: Goal, settings: Any, staff: bool
) -> None:
    User.objects.update(is_staff=staff)
    settings.WAYMARK_SEARCH = ""
    tell_of_commands("Commands are withheld: no bubblewrap.")
    for address in (f"/goals/{goal.pk}/settings/", "/settings/assistant/"):
        page = client.get(address).content.decode()
        assert ('name="mode-web_search"' in page, 'name="mode-run_cmd"' in page) == (False, False)
        assert page.count("Not available") == 2
        assert ("WAYMARK_SEARCH" in page, "docs/operations.md" in page, "no bubblewrap" in page) == (staff,) * 3
        assert ("It is not set up on this server" in page) is not staff
    settings.WAYMARK_SEARCH, settings.WAYMARK_SEARXNG_URL = "searxng", "http://searx.home:8080"
    tell_of_commands("")
    page = client.get(f"/goals/{goal.pk}/settings/").content.decode()
    assert ('name="mode-web_search"' in page, 'name="mode-run_cmd"' in page) == (True, True)


def test_tools_stand_under_what_they_are_about(client: Client, goal: Goal) -> None:
    page = client.get(f"/goals/{goal.pk}/settings/").text
    groups = re.findall(r"<h3>([^<]*)</h3><span[^>]*>([^<]*)<", page)
    assert [words for words, _count in groups] == [
        "Notes and memory",
        "Files and commands",
        "The web",
        "Plans, helpers and times",
        "What was done, and undoing it",
        "More",
    ]
    assert dict(groups)["Notes and memory"] == "12 of 12 on"
    assert "11 of 12 on" in save(client, goal, **{"mode-create_note": "off"})


def test_a_mistake_in_one_field_costs_nothing_of_the_others(client: Client, goal: Goal) -> None:
    given = {"title": " ", "mode-create_note": "off", "packs": "reflective"}
    answer = client.post(f"/goals/{goal.pk}/settings/", given)
    assert answer.status_code == 422
    assert 'name="mode-create_note" value="off" checked' in answer.text
    assert re.search(r'name="packs" value="reflective"[^>]* checked', answer.text)
    goal.refresh_from_db()
    assert (goal.modes, goal.packs) == ({}, [])


@pytest.mark.parametrize("sent", [{"mode-send_email": "auto"}, {"mode-nothing": "off"}, {"mode-create_note": "maybe"}])
def test_what_a_tool_does_not_allow_is_refused_and_nothing_is_lost(
    client: Client, goal: Goal, sent: dict[str, str]
) -> None:
    Goal.objects.update(modes={"create_note": "ask"})
    title = goal.title
    assert "cannot be set to" in save(client, goal, title="Another", **sent)
    goal.refresh_from_db()
    assert (goal.modes, goal.title) == ({"create_note": "ask"}, title)


def test_the_assistant_has_tools_of_its_own(client: Client, goal: Goal) -> None:
    client.post("/settings/assistant/", {"mode-create_note": "off"})
    assert assistant_of(goal.user).modes == {"create_note": "off"}
    assert 'value="off" checked' in client.get("/settings/assistant/").content.decode()


def test_a_person_sees_whose_texts_were_read_and_vouches_for_them(client: Client, goal: Goal) -> None:
    Thread.objects.filter(pk=goal.thread_id).update(sources=["stranger.example", "<b>bold</b>"])
    page = client.get(f"/goals/{goal.pk}/settings/").content.decode()
    assert "stranger.example, &lt;b&gt;bold&lt;/b&gt;" in page
    client.post(f"/goals/{goal.pk}/vouch/")
    assert Thread.objects.get(pk=goal.thread_id).sources == []
    assert "has read what others wrote" not in client.get(f"/goals/{goal.pk}/settings/").content.decode()


@pytest.mark.parametrize("path", ["settings", "vouch"])
def test_nobody_else_does(goal: Goal, path: str, django_user_model: type[User]) -> None:
    stranger = Client()
    stranger.force_login(GoalFactory.create().user)
    assert stranger.post(f"/goals/{goal.pk}/{path}/", {"title": "x", "mode-create_note": "off"}).status_code == 404
    goal.refresh_from_db()
    assert goal.modes == {}


def test_the_api_reads_and_sets_modes(client: Client, goal: Goal) -> None:
    address, headers = f"/api/v1/goals/{goal.pk}", bearer(goal.user)

    def patch(modes: dict[str, str]) -> Any:
        return client.patch(address, {"modes": modes}, content_type="application/json", headers=headers)

    assert patch({"send_email": "off"}).json()["modes"] == {"send_email": "off"}
    refused = patch({"send_email": "auto"})
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "invalid_mode"
    read = client.get(address, headers=headers).json()
    assert read["modes"] == {"send_email": "off"}
    assert read["sources"] == []
