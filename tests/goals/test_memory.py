"""What an agent keeps in mind, in the browser and over the API (missions E1 and H9)."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.services import assistant_of
from goals.models import Goal
from memory.models import Learning
from tests.factories import AgentActionFactory, AgentTaskFactory, LearningFactory, ThreadMessageFactory, bearer
from tools.models import AgentAction

pytestmark = pytest.mark.django_db(transaction=True)

MORNINGS = "Runs <i>before</i> work."


@pytest.fixture
def learning(goal: Goal) -> Learning:
    """One that the agent has learned."""
    action = AgentActionFactory(thread=goal.thread, user=goal.user, tool="manage_learning")
    message = ThreadMessageFactory(thread=goal.thread, content="I run <b>before</b> work & never late.")
    learning: Learning = LearningFactory(
        thread=goal.thread, text=MORNINGS, message=message, action=action.pk, sources=["site.example"]
    )
    return learning


def page(goal: Goal) -> str:
    return f"/threads/{goal.thread_id}/memory/"


def hold(goal: Goal) -> dict[int, str]:
    return dict(Learning.objects.filter(thread=goal.thread).current().values_list("number", "text"))


def last_deed() -> AgentAction:
    return AgentAction.objects.filter(run=None).latest("created_at")


def test_each_fact_opens_its_source(client: Client, goal: Goal) -> None:
    assert "Nothing learned yet" in client.get(page(goal)).text


def test_the_page_says_why(client: Client, goal: Goal, learning: Learning) -> None:
    shown = client.get(page(goal)).text
    assert "Runs &lt;i&gt;before&lt;/i&gt; work." in shown
    assert "I run &lt;b&gt;before&lt;/b&gt; work &amp; never late." in shown
    assert "after reading site.example" in shown
    assert f"/actions/{learning.action}/" in shown
    assert client.get(f"/actions/{learning.action}/").status_code == 200
    assert page(goal) in client.get(f"/goals/{goal.pk}/").text


def done(client: Client, address: str, given: dict[str, str]) -> str:
    """The page after a press of a button, which a reload does not press again. It offers the way back until that was
    taken."""
    answer = client.post(address, given)
    assert answer.status_code == 302
    shown = client.get(answer["Location"]).text
    assert f"/actions/{last_deed().pk}/undo" in shown
    return shown


def test_a_person_tells_corrects_and_takes_back_and_can_undo_each(client: Client, goal: Goal) -> None:
    assert "Kept in mind:" in done(client, f"{page(goal)}add", {"text": "Is\n afraid of dogs."})
    assert hold(goal) == {1: "Is afraid of dogs."}
    (first,) = Learning.objects.all()
    assert "Corrected:" in done(client, f"/learnings/{first.pk}/correct", {"text": "Likes dogs."})
    assert hold(goal) == {2: "Likes dogs."}
    assert "replaced by number 2" in client.get(page(goal)).text
    second = Learning.objects.get(number=2)
    assert "Taken back:" in done(client, f"/learnings/{second.pk}/take-back", {})
    assert hold(goal) == {}
    for holds in ({2: "Likes dogs."}, {1: "Is afraid of dogs."}, {}):
        deed = AgentAction.objects.filter(run=None, undone=False, undoes=None).latest("created_at")
        client.post(f"/actions/{deed.pk}/undo")
        assert hold(goal) == holds
    goal.thread.refresh_from_db()
    assert "The user wants you to keep in mind: Is afraid of dogs." in goal.thread.news


@pytest.mark.parametrize(
    ("text", "why"), [("  ", "There is nothing in it."), ("x" * 501, "501 characters"), (MORNINGS, "says this already")]
)
def test_what_is_refused_is_not_lost(text: str, why: str, client: Client, goal: Goal, learning: Learning) -> None:
    for address in (f"{page(goal)}add", f"/learnings/{learning.pk}/correct"):
        answer = client.post(address, {"text": text})
        assert answer.status_code == 422
        assert why in answer.text
        assert f">{text.replace('<', '&lt;').replace('>', '&gt;')}</textarea>" in answer.text
    assert hold(goal) == {1: MORNINGS}


def test_what_holds_is_not_erased_and_what_held_can_be(client: Client, goal: Goal, learning: Learning) -> None:
    client.post(f"/learnings/{learning.pk}/erase")
    assert hold(goal) == {1: MORNINGS}
    client.post(f"/learnings/{learning.pk}/take-back")
    late = client.post(f"/learnings/{learning.pk}/correct", {"text": "Never."}, follow=True)
    assert "holds no more" in late.text
    client.post(f"/learnings/{learning.pk}/erase")
    assert not Learning.objects.exists()


def test_the_assistant_has_a_memory_and_a_helper_has_none(client: Client, goal: Goal, user: User) -> None:
    assert client.get(f"/threads/{assistant_of(user).thread_id}/memory/").status_code == 200
    helper = AgentTaskFactory(parent=goal.thread)
    assert client.get(f"/threads/{helper.thread_id}/memory/").status_code == 404


def test_over_the_api(client: Client, goal: Goal, learning: Learning, user: User) -> None:
    api, mine = bearer(user), f"/api/v1/goals/{goal.pk}/learnings"
    (shown,) = client.get(mine, headers=api).json()["results"]
    assert shown["text"] == MORNINGS
    assert shown["message"] == str(learning.message_id)
    assert shown["action"] == str(learning.action)
    told = client.post(mine, {"text": "Is afraid of dogs."}, content_type="application/json", headers=api)
    assert (told.status_code, told.json()["tool"]) == (201, "tell_learning")
    one = f"/api/v1/learnings/{learning.pk}"
    assert client.patch(one, {"text": " "}, content_type="application/json", headers=api).status_code == 400
    assert client.patch(one, {"text": "At noon."}, content_type="application/json", headers=api).status_code == 200
    assert client.delete(one, headers=api).status_code == 404
    assert hold(goal) == {2: "Is afraid of dogs.", 3: "At noon."}
    (former,) = client.get(f"{mine}?former=true", headers=api).json()["results"]
    assert former["id"] == str(learning.pk)
    undo = f"/api/v1/actions/{last_deed().pk}/undo"
    assert client.post(undo, content_type="application/json", headers=api).status_code == 200
    assert hold(goal) == {1: MORNINGS, 2: "Is afraid of dogs."}
    assistants = "/api/v1/agent/learnings"
    assert client.get(assistants, headers=api).json()["results"] == []
