"""A model that refuses the history whatever is left out of it: the conversation can go on from its summary."""

from collections.abc import Callable
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from agents.engine import bell, jobs
from agents.restart import words
from goals.models import Goal
from memory.degrade import HISTORY_REFUSED
from memory.ids import new_id
from memory.models import AgentHistory, AgentRun, ArchiveStatus, ThreadMessage
from tests.agents.engine.test_orchestrator import cells
from tests.agents.engine.test_quarantine import REFUSED
from tests.factories import AgentRunFactory, ThreadMessageFactory, bearer
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

SUMMARY = "Ines trains for a half marathon."


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The runs that are to be started from the summary, in place of the doorbell."""
    asked: list[UUID] = []

    def ask(run_id: UUID, user_id: int) -> bool:
        asked.append(run_id)
        return True

    monkeypatch.setattr(bell, "ask_for_restart", ask)
    return asked


def until_summed_up(request: Request) -> Reply | Status:
    """A server that takes nothing but a new beginning."""
    if "<session>" in request.raw.decode():
        return Reply(text=SUMMARY)
    return Reply(text="From the summary, then.") if SUMMARY in request.raw.decode() else REFUSED


@pytest.fixture
def refused(goal: Goal, say: Say, llm: LLMServer) -> AgentRun:
    llm.script([Reply(text="Good morning.")])
    say("I train for a half marathon")
    llm.always(until_summed_up)
    return say("How far on Sunday?")


def work(run_id: UUID, rung: list[UUID]) -> None:
    jobs.restart(str(run_id))
    while rung:
        jobs.run(str(rung.pop(0)))


def post(client: Client, run: AgentRun) -> str:
    answer = client.post(reverse("run_restart", args=[run.pk]), headers={"HX-Request": "true"})
    return f"{answer.status_code} {answer.content.decode()}"


def test_a_refused_history_is_put_away_and_the_message_tried_again(
    goal: Goal, refused: AgentRun, client: Client, asked: list[UUID], rung: list[UUID], llm: LLMServer
) -> None:
    assert refused.reason == HISTORY_REFUSED
    client.force_login(goal.user)
    offered = client.get(reverse("goal", args=[goal.pk])).content.decode()
    assert "Start from the summary" in offered
    assert post(client, refused).startswith("200")
    work(asked.pop(), rung)

    assert cells(goal)[-2:] == [("user", "text", "How far on Sunday?"), ("agent", "text", "From the summary, then.")]
    assert AgentHistory.objects.get(thread=goal.thread).summary == SUMMARY
    assert "I train" not in llm.requests[-1].raw.decode()
    assert "Start from the summary" not in client.get(reverse("goal", args=[goal.pk])).content.decode()


def test_a_second_press_says_nothing_twice(
    goal: Goal, refused: AgentRun, client: Client, asked: list[UUID], rung: list[UUID]
) -> None:
    client.force_login(goal.user)
    post(client, refused)
    post(client, refused)
    for run_id in asked:
        work(run_id, rung)
    assert [content for source, _, content in cells(goal) if source == "user"].count("How far on Sunday?") == 2
    assert post(client, refused).startswith("422")


def test_what_was_tried_in_vain_before_is_said_again_too(
    goal: Goal, refused: AgentRun, client: Client, asked: list[UUID], rung: list[UUID]
) -> None:
    client.force_login(goal.user)
    error = ThreadMessage.objects.filter(thread=goal.thread, source="error").get()
    client.post(reverse("message_retry", args=[error.pk]))
    while rung:
        jobs.run(str(rung.pop(0)))
    again = AgentRun.objects.latest("created_at")
    assert again.trigger == "retry"
    post(client, again)
    work(asked.pop(), rung)
    assert cells(goal)[-2:] == [("user", "text", "How far on Sunday?"), ("agent", "text", "From the summary, then.")]


def test_a_report_or_a_check_in_in_between_is_no_answer(goal: Goal, refused: AgentRun) -> None:
    asked, error = ThreadMessage.objects.filter(thread=goal.thread).order_by("position")[2:]
    assert asked.content == "How far on Sunday?"
    for between in ({"task": str(new_id())}, {"schedule": str(new_id())}):
        ThreadMessageFactory(thread=goal.thread, run=refused, source="agent", metadata=between)
    ThreadMessage.objects.filter(pk=error.pk).update(position=error.position + 100)
    assert words(refused)[0] == "How far on Sunday?"


def test_a_model_that_will_not_sum_up_either_is_not_asked_for_ever(
    goal: Goal, say: Say, client: Client, asked: list[UUID], rung: list[UUID], llm: LLMServer
) -> None:
    llm.always(lambda request: REFUSED if "I train" in request.raw.decode() else Reply(text="Here I am."))
    run = say("I train")
    goal.refresh_from_db()
    client.force_login(goal.user)
    post(client, run)
    jobs.restart(str(asked.pop()))
    archived = AgentHistory.objects.get(thread=goal.thread)
    assert (archived.status, archived.model) == (ArchiveStatus.DONE, "")


def test_what_was_decided_is_said_again_as_a_decision(
    goal: Goal, refused: AgentRun, client: Client, asked: list[UUID], rung: list[UUID]
) -> None:
    """It quotes what the agent has written, so it does not become the user's own words."""
    about = str(new_id())
    ThreadMessage.objects.filter(thread=goal.thread, content="How far on Sunday?").update(metadata={"decision": about})
    client.force_login(goal.user)
    post(client, refused)
    work(asked.pop(), rung)
    again = ThreadMessage.objects.filter(thread=goal.thread, content="How far on Sunday?").latest("position")
    assert again.run_id != refused.pk
    assert again.metadata == {"decision": about}


def test_only_a_refused_history_that_is_the_last_word_can_be_restarted(
    goal: Goal, refused: AgentRun, client: Client, asked: list[UUID]
) -> None:
    client.force_login(goal.user)
    other: AgentRun = AgentRunFactory(thread=goal.thread)
    assert "Only a run" in post(client, other)
    client.force_login(AgentRunFactory().thread.user)
    assert post(client, refused).startswith("404")
    assert asked == []


def test_the_api_starts_from_the_summary(goal: Goal, refused: AgentRun, asked: list[UUID]) -> None:
    address = reverse("api:run_restart", args=[refused.pk])
    answer = Client().post(address, "{}", "application/json", headers=bearer(goal.user))
    assert (answer.status_code, answer.json()["reason"]) == (202, HISTORY_REFUSED)
    assert asked == [refused.pk]
    ThreadMessage.objects.create(thread=goal.thread, source="user", content="Never mind")
    answer = Client().post(address, "{}", "application/json", headers=bearer(goal.user))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "not_refused")


def test_without_script_the_page_says_what_happens(
    goal: Goal, refused: AgentRun, client: Client, asked: list[UUID]
) -> None:
    client.force_login(goal.user)
    here = reverse("goal", args=[goal.pk])
    answer = client.post(reverse("run_restart", args=[refused.pk]), {"next": here}, follow=True)
    assert "being summed up" in answer.content.decode()
