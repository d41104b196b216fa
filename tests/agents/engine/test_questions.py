"""An agent asks its user something, with answers to pick from (mission D2)."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from agents import services
from agents.engine import archiving, jobs
from agents.services import assistant_of
from goals import noticing
from goals.models import Goal, Notice, NoticeKind
from goals.updates import updates
from memory.archive import Outcome
from memory.metadata import MessageMetadata
from memory.models import AgentRun, ArchiveReason, Thread, ThreadMessage
from tests.factories import GoalFactory, ThreadMessageFactory, bearer
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tools.models import AgentAction
from tools.seen import typed, was_given

type Say = Callable[[str], AgentRun]

QUESTION = "Which race?"
ANSWERS = ["Graz in May", "<b>Linz</b> https://linz.example/x"]


@pytest.fixture
def question(goal: Goal, say: Say, llm: LLMServer) -> ThreadMessage:
    call = ("ask_user", {"question": QUESTION, "answers": ANSWERS})
    llm.script([Reply("Which race?", calls=[call])])
    assert say("Sign me up").status == "succeeded"
    found: ThreadMessage = ThreadMessage.objects.get(thread=goal.thread, metadata__has_key="asks")
    return found


def page(goal: Goal, client: Client) -> str:
    client.force_login(goal.user)
    return client.get(f"/goals/{goal.pk}/").content.decode()


def signed_in_as(goal: Goal) -> Client:
    browser = Client()
    browser.force_login(goal.user)
    assistant = assistant_of(goal.user)
    assistant.welcomed = True
    assistant.save()
    return browser


def picks(client: Client, question: ThreadMessage, pick: int) -> int:
    return client.post(f"/messages/{question.pk}/answer/{pick}", headers={"HX-Request": "true"}).status_code


def test_it_is_asked_once_and_what_was_picked_comes_as_the_next_message(
    goal: Goal, question: ThreadMessage, rung: list[UUID], llm: LLMServer, client: Client
) -> None:
    assert (question.content, question.metadata) == (QUESTION, {"asks": ANSWERS})
    assert len(llm.requests) == 1, "it ends the turn"
    assert page(goal, client).count(f">{QUESTION}<") == 1
    assert page(goal, client).count("/answer/") == 4  # of two buttons, with and without script
    assert "&lt;b&gt;Linz&lt;/b&gt;" in page(goal, client)
    llm.script([Reply("You run in Graz.")])
    assert picks(client, question, 0) == 200
    while rung:
        jobs.run(str(rung.pop(0)))
    answer = ThreadMessage.objects.get(thread=goal.thread, metadata__has_key="answers")
    assert (answer.source, answer.content) == ("user", "Graz in May")
    assert "Graz in May" in str(llm.requests[-1].messages[-1]["content"])
    assert "/answer/" not in page(goal, client)


def test_an_answer_after_days_is_one_to_its_question(
    goal: Goal, question: ThreadMessage, rung: list[UUID], llm: LLMServer
) -> None:
    llm.script([Reply("A race\n\nThey want to run.")])
    assert archiving.archive_session(goal.thread_id, ArchiveReason.BY_HAND, at_once=True) is Outcome.DONE
    llm.script([Reply("You run in Graz.")])
    services.pick_answer(question, 0)
    jobs.run(str(rung.pop(0)))
    said = [str(message["content"]) for message in llm.requests[-1].messages if message["role"] == "user"]
    assert len(said) == 1
    assert "You have asked the user, who has said nothing since: Which race?" in said[0]
    assert said[0].endswith("Graz in May")
    llm.script([Reply("A race\n\nThey run in Graz.")])
    assert archiving.archive_session(goal.thread_id, ArchiveReason.BY_HAND, at_once=True) is Outcome.DONE
    assert Thread.objects.get(pk=goal.thread_id).news == ""


def test_two_devices_pick_and_the_first_counts(
    goal: Goal, question: ThreadMessage, rung: list[UUID], client: Client
) -> None:
    client.force_login(goal.user)
    assert [picks(client, question, pick) for pick in (1, 1, 0)] == [200, 200, 200]
    answer = ThreadMessage.objects.get(thread=goal.thread, metadata__has_key="answers")
    assert answer.content == ANSWERS[1]
    assert len(rung) == 1


def test_what_cannot_be_picked_says_why(goal: Goal, question: ThreadMessage, client: Client) -> None:
    client.force_login(goal.user)
    assert picks(client, question, 2) == 422
    ThreadMessageFactory(thread=goal.thread, content="Neither.")
    assert picks(client, question, 0) == 422
    assert client.post(f"/messages/{question.pk}/answer/0", {"next": "/feed/"})["Location"] == "/feed/"
    assert "Write your answer as a message." in client.get("/feed/").content.decode()
    answer = ThreadMessageFactory(thread=goal.thread, source="agent", content="No question")
    assert picks(client, answer, 0) == 422
    assert not ThreadMessage.objects.filter(metadata__has_key="answers").exists()


def test_nobody_picks_for_others(question: ThreadMessage, client: Client) -> None:
    client.force_login(GoalFactory().user)
    assert picks(client, question, 0) == 404


def test_what_was_picked_was_not_written_by_the_user(goal: Goal, question: ThreadMessage, rung: list[UUID]) -> None:
    """The agent wrote it: it is no evidence about the person, and opens no addresses."""
    services.pick_answer(question, 1)
    jobs.run(str(rung.pop(0)))
    assert [message.content for message in typed(goal.thread_id)] == ["Sign me up"]
    assert not was_given(goal.thread_id, "https://linz.example/x")


def test_it_waits_for_its_user_until_they_say_something(goal: Goal, question: ThreadMessage, rung: list[UUID]) -> None:
    def told() -> list[tuple[str, str]]:
        since = timezone.now() - timedelta(hours=1)
        return [(each.kind, each.said) for each in updates(goal.user, since, [goal.thread_id])]

    noticing.find()
    noticing.find()
    notice = Notice.objects.get()
    assert (notice.kind, notice.said) == (NoticeKind.WAITING, "Which race?")
    assert told() == [("asked", "Which race?")]
    noticing.settle()
    assert Notice.objects.open().exists()
    services.send_message(goal.thread, "The one in Graz, I think.")
    noticing.settle()
    assert not Notice.objects.open().exists()
    assert told() == [("answer", "Which race?")]


def test_a_decision_about_something_else_is_no_answer(goal: Goal, question: ThreadMessage) -> None:
    ThreadMessageFactory(thread=goal.thread, content="Approved", metadata={"decision": str(question.pk)})
    assert ThreadMessage.objects.unanswered().get() == question
    ThreadMessageFactory(thread=goal.thread, content="Graz.")
    assert not ThreadMessage.objects.unanswered().exists()


def test_home_asks_for_the_answer_and_so_it_is_seen(goal: Goal, question: ThreadMessage) -> None:
    home = signed_in_as(goal)
    noticing.find()
    assert "Answer<span" in home.get("/").content.decode()
    noticing.settle()
    assert not Notice.objects.open().exists()
    services.send_message(goal.thread, "The one in Graz, I think.")
    assert "Answer<span" not in home.get("/").content.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        {"question": "  "},
        {"question": "Well?", "answers": ["Yes", "\u200b"]},
        {"question": "Well?", "answers": ["x" * 81]},
        {"question": "Well?", "answers": ["x"] * 7},
    ],
)
def test_what_is_no_question_is_not_asked(arguments: dict[str, object], goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[("ask_user", arguments)]), Reply("Well.")])
    say("Ask me")
    assert not ThreadMessage.objects.filter(metadata__has_key="asks").exists()
    assert AgentAction.objects.get(tool="ask_user").status == "error"


def test_an_open_question_has_no_buttons_and_devices_are_told_of_all(
    goal: Goal, say: Say, llm: LLMServer, client: Client
) -> None:
    llm.script([Reply(calls=[("ask_user", {"question": "How is the knee?"})])])
    say("Hello")
    assert "/answer/" not in page(goal, client)
    found = client.get(f"/api/v1/goals/{goal.pk}/messages", headers=bearer(goal.user)).json()["results"]
    asked = [MessageMetadata.model_validate(each["metadata"]).asks for each in found]
    assert () in asked
    assert ThreadMessage.objects.unanswered().count() == 1


def test_a_device_picks_too(goal: Goal, question: ThreadMessage, client: Client) -> None:
    def post(content: str, to: ThreadMessage = question) -> tuple[int, str]:
        body = {"content": content, "answers": str(to.pk)}
        sent = client.post(
            f"/api/v1/goals/{goal.pk}/messages", body, content_type="application/json", headers=bearer(goal.user)
        )
        said = sent.json()
        return sent.status_code, said["error"]["code"] if "error" in said else said["message"]["content"]

    assert post("Paris") == (400, "no_answer")
    assert post(ANSWERS[1]) == (202, ANSWERS[1])
    assert post(ANSWERS[0]) == (200, ANSWERS[1])
    other = ThreadMessageFactory(thread=GoalFactory(user=goal.user).thread, metadata={"asks": ANSWERS})
    assert post(ANSWERS[0], other)[0] == 404


def test_helpers_ask_nobody(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply("None.")], lambda request: "Look it up" in request.first_user_text)
    task = ("create_task", {"title": "Shoes", "instructions": "Look it up"})
    llm.script([Reply(calls=[task]), Reply("Sent off."), Reply("None.")])
    say("Find shoes")
    offered = {
        "Look it up" in request.first_user_text: {tool["function"]["name"] for tool in request.body["tools"]}
        for request in llm.requests
    }
    assert "ask_user" in offered[False]
    assert "ask_user" not in offered[True]
