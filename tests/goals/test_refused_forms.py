"""Pages that answer a form which was refused: they say why where it is seen, and what stands on them still works."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.connecting import Given, connect_model
from agents.models import ModelConnection
from agents.providers.capabilities import Capabilities
from agents.services import assistant_of
from memory.models import ThreadMessage
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    person: User = UserFactory.create(is_staff=True)
    agent = assistant_of(person)
    agent.welcomed = True
    agent.save()
    return person


def refused(client: Client, path: str, given: dict[str, str]) -> str:
    answer = client.post(path, given)
    assert answer.status_code == 422
    return answer.content.decode()


def focused(page: str) -> str:
    """The first element that takes the focus when the page is opened; a dialog does so only once it is shown."""
    return re.findall(r"<[^>]* autofocus[^>]*>", page.split("<dialog", 1)[0])[0]


def test_a_model_can_be_connected_on_the_page_that_refused_a_choice(client: Client, user: User) -> None:
    connect_model(user, "compatible", Given("big", "http://127.0.0.1:9"))
    mute = connect_model(
        user, "compatible", Given("mute", "http://127.0.0.1:9"), Capabilities(tools=False), default=False
    )
    page = refused(client, "/settings/models/uses/", {"default": str(mute.pk)})
    assert 'role="alert" tabindex="-1" autofocus' in page
    actions = [re.search(r'action="([^"]+)"', form) for form in re.findall(r'<form[^>]*method="post"[^>]*>', page)]
    assert all(actions), "none leads to where the page was refused"
    where = actions[-1 if "new-goal" not in page else -2]
    assert where
    client.post(where[1], {"kind": "openai", "openai-key": "k", "openai-model": "gpt-9"})
    assert ModelConnection.objects.filter(model="gpt-9").exists()


def test_the_page_that_refused_a_price_still_shows_and_links(client: Client, user: User) -> None:
    connect_model(user, "compatible", Given("unheard-of", "http://127.0.0.1:9"))
    page = refused(client, "/settings/costs/prices/", {"kind": "openai", "model": "m", "input": "abc", "output": "1"})
    links = re.findall(r'href="([^"]*\?[^"]*)"', page)
    assert links
    assert not [link for link in links if link.startswith("?")]
    assert all(client.get(link.replace("&amp;", "&")).status_code == 200 for link in links)
    shown = re.search(r'<form[^>]*method="get"[^>]*action="([^"]+)"', page)
    assert shown
    assert client.get(shown[1], {"by": "day"}).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_without_script_a_refused_message_is_sent_again_from_where_it_was_written(client: Client, user: User) -> None:
    connect_model(user, "compatible", Given("big", "http://127.0.0.1:9"))
    path = f"/threads/{assistant_of(user).thread_id}/messages"
    page = refused(client, path, {"content": " ", "next": "/assistant/"})
    nexts = re.findall(r'name="next" value="([^"]*)"', page)
    assert set(nexts) == {"/assistant/"}
    answer = client.post(path, {"content": "Hello", "next": nexts[0]}, follow=True)
    assert answer.status_code == 200
    assert ThreadMessage.objects.get().content == "Hello"


@pytest.mark.parametrize(
    ("path", "given", "where"),
    [
        ("/settings/models/", {"kind": "openai"}, 'class="callout"'),
        ("/settings/budget/", {"window": "month"}, 'class="callout"'),
        ("/settings/budget/", {"window": "month", "money": "-1", "tokens": "x"}, 'name="money"'),
        ("/settings/costs/prices/", {"kind": "openai", "model": "", "input": "1", "output": ""}, 'name="model"'),
        ("/settings/costs/prices/", {"kind": "openai", "model": "m", "input": "x", "output": "1"}, 'class="callout"'),
        ("/settings/models/uses/", {"default": ""}, 'name="default"'),
        ("/settings/", {"time_zone": "Atlantis"}, 'name="time_zone"'),
        ("/goals/new/", {"title": ""}, 'name="title"'),
        ("/welcome/", {"kind": "openai"}, 'class="callout"'),
        ("/welcome/", {"kind": "demo", "monthly": "much"}, 'name="monthly"'),
    ],
)
def test_what_is_wrong_is_where_one_goes_on(
    client: Client, user: User, path: str, given: dict[str, str], where: str
) -> None:
    connect_model(user, "compatible", Given("big", "http://127.0.0.1:9"))
    assert "autofocus" not in client.get("/settings/budget/").content.decode().split("<dialog", 1)[0]
    assert where in focused(refused(client, path, given))


@pytest.mark.parametrize("path", ["/settings/models/uses/", "/settings/costs/prices/"])
def test_an_address_that_only_takes_forms_says_so(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 405
    assert answer["Allow"] == "POST"
    assert "This address only takes what a form sends" in answer.content.decode()


def test_the_api_says_it_in_its_own_shape(api: Client) -> None:
    answer = api.delete("/api/v1/goals")
    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "method_not_allowed"
