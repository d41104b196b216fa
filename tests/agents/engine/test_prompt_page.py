"""What was sent with any call, word for word, on a page for staff (mission E2)."""

import html
import re
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from agents import decisions, services
from agents.engine import archiving, jobs, kept
from agents.engine.health import monitor
from agents.models import HealthReport, ModelCall, Prompt
from goals.models import Goal
from goals.services import delete_goal
from memory.models import AgentRun, ArchiveReason, HistoryEntry, RunStatus
from tests.agents.engine.test_archiving import SUMMARY, asks_for_summary, talk
from tests.agents.engine.test_shortening import DIALECTS, small_model
from tests.factories import ModelCallFactory, UserFactory
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer
from tests.world import World
from tools.base import Outcome
from tools.builtin.notes import ListNotes
from tools.models import AgentAction, ApprovalState

type Say = Callable[[str], AgentRun]

NOTE = ("create_note", {"title": "Schuhe <für> Graz", "body": "blau & “neu”"})


@pytest.fixture
def desk() -> Client:
    client = Client()
    client.force_login(UserFactory.create(staff=True))
    return client


def page(desk: Client, call: ModelCall) -> str:
    answer = desk.get(reverse("admin:agents_modelcall_prompt", args=[call.pk]))
    assert answer.status_code == 200
    assert "style-src 'self';" in answer["Content-Security-Policy"]
    return answer.content.decode()


def sections(shown: str) -> list[tuple[str, str]]:
    """Titles and texts, in the order of the page."""
    found = re.findall(r"<summary><strong>(.*?)</strong>.*?<pre>(.*?)</pre>", shown, re.DOTALL)
    return [(html.unescape(title), html.unescape(text)) for title, text in found]


def titles(shown: str) -> list[str]:
    return [title for title, _ in sections(shown)]


def said(request: Request) -> str:
    """All words of the messages of a request, one after the other."""
    words: list[str] = []
    for message in request.messages[1:]:
        content: Any = message.get("content") or ""
        words += [content] if isinstance(content, str) else [part["text"] for part in content]
    return "\n".join(words)


def assert_as_sent(shown: str, request: Request) -> None:
    """The page has the system prompt, the tools and every word of the messages, in order."""
    found = sections(shown)
    tools = [tool["function"] for tool in request.body["tools"]]
    first = titles(shown).index(tools[0]["name"])
    assert "".join(text for _, text in found[:first]) == request.messages[0]["content"]
    assert titles(shown)[first : first + len(tools)] == [tool["name"] for tool in tools]
    for (_, text), tool in zip(found[first:], tools, strict=False):
        assert text.startswith(tool["description"])
    entries = re.findall(r"<header><strong>\d+ · (\w+)", shown)
    assert entries == [message["role"] for message in request.messages[1:]]
    words = "".join(text for _, text in found[first + len(tools) :])
    at = 0
    for word in said(request).split():
        at = words.index(word, at) + len(word)


def test_each_call_shows_what_it_sent_and_nothing_that_came_later(
    goal: Goal, say: Say, llm: LLMServer, desk: Client
) -> None:
    llm.script([Reply(calls=[NOTE], usage=(1234, 5, 1000)), Reply("Noted."), Reply("Welcome.")])
    run = say("Make a note")
    say("Thanks")
    calls = list(ModelCall.objects.all())
    shown = [page(desk, call) for call in calls]
    for each, request in zip(shown, llm.requests, strict=True):
        assert_as_sent(each, request)
    assert "1,234 tokens, 1,000 of them from its cache" in shown[0]
    assert titles(shown[0])[:2] == ["core", "role"]
    assert titles(shown[0])[-2:] == ["time", "text"]
    assert "Schuhe" not in shown[0]
    assert any("blau & “neu”" in text for _, text in sections(shown[1]))
    assert "Thanks" not in shown[1]
    assert Prompt.objects.count() == 2, "the same prompt and tools are kept once"
    run_page = desk.get(reverse("admin:memory_agentrun_change", args=[run.pk])).content.decode()
    assert reverse("admin:agents_modelcall_prompt", args=[calls[1].pk]) in run_page


def test_a_session_that_was_archived_since_is_still_shown(goal: Goal, say: Say, llm: LLMServer, desk: Client) -> None:
    llm.script([Reply("Hello.")])
    say("Good morning")
    llm.script([Reply(text=SUMMARY)], asks_for_summary)
    archiving.archive_session(goal.thread_id, ArchiveReason.IDLE)
    llm.script([Reply("Again.")])
    say("Good evening")
    first, summary, last = ModelCall.objects.all()
    requests = {asks_for_summary(request): request for request in llm.requests}
    assert_as_sent(page(desk, first), llm.requests[0])
    shown = page(desk, last)
    assert_as_sent(shown, requests[False])
    assert titles(shown)[:3] == ["core", "role", "earlier_sessions"]
    assert "Good morning" not in shown
    beside = sections(page(desk, summary))
    assert [text for _, text in beside] == [message["content"] for message in requests[True].messages]


def test_a_call_that_failed_has_what_it_sent_and_its_repeat_what_joined(
    goal: Goal, say: Say, llm: LLMServer, desk: Client
) -> None:
    def fails(_: Request) -> Status:
        services.send_message(goal.thread, "And socks")
        return Status(500)

    llm.script([Reply(calls=[NOTE]), fails, Reply("Noted."), Reply("Socks, too.")])
    say("Make a note of shoes")
    shown = [page(desk, call) for call in ModelCall.objects.all()]
    assert len(shown) == len(llm.requests)
    for each, request in zip(shown, llm.requests, strict=True):
        assert_as_sent(each, request)
    assert ["And socks" in each for each in shown] == [False, False, False, True]


def test_what_was_cut_because_it_was_too_long_is_shown_cut(
    say: Say, llm: LLMServer, desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ListNotes, "run", lambda *_: Outcome("n" * 19_000))
    llm.script([Reply(calls=[("list_notes", {})]), *[small_model(DIALECTS["b"])] * 2])
    say("Which races?")
    _, refused, taken = [page(desk, call) for call in ModelCall.objects.all()]
    assert "n" * 19_000 in refused
    assert "n" * 1_001 not in taken
    assert "sent cut to 1,000 characters" in taken
    assert "sent cut" not in refused


def test_a_session_that_was_shortened_midway_is_shown_as_it_was_before_and_after(
    goal: Goal, say: Say, llm: LLMServer, desk: Client
) -> None:
    talk(goal, 40, size=300)
    llm.script([small_model(DIALECTS["a"])] * 9)
    say("Are you there?")
    refused, taken = ModelCall.objects.filter(run__isnull=False)
    first, *_, last = llm.requests
    assert_as_sent(page(desk, refused), first)
    assert_as_sent(page(desk, taken), last)
    assert SUMMARY in page(desk, taken)


def test_it_says_what_is_not_known(goal: Goal, say: Say, llm: LLMServer, desk: Client) -> None:
    assert "before prompts were kept" in page(desk, ModelCallFactory())
    assert "was deleted" in page(desk, ModelCallFactory(run=None, user=goal.user))
    llm.script([Reply("Hello.")])
    say("Hello")
    ModelCall.objects.update(until_seq=None, status="failed")
    shown = page(desk, ModelCall.objects.get(run__thread=goal.thread))
    assert "worker ended before it did" in shown
    assert "Hello." not in shown
    HistoryEntry.objects.filter(thread=goal.thread).update(quarantine="short")
    assert "quarantine (short)" in page(desk, ModelCall.objects.get(run__thread=goal.thread))


def test_looking_needs_both_rights_is_written_down_and_costs_the_same(
    goal: Goal, say: Say, llm: LLMServer, desk: Client
) -> None:
    llm.script([*[Reply(calls=[("list_notes", {"query": str(at)})]) for at in range(5)], Reply("Done.")])
    say("Go on")
    first, *_, last = ModelCall.objects.all()
    page(desk, first)
    costs = []
    for call in (first, last):
        with CaptureQueriesContext(connection) as captured:
            page(desk, call)
        costs.append(len(captured))
    assert costs[0] == costs[1]
    assert LogEntry.objects.filter(object_id=str(first.pk), change_message="Viewed the prompt").count() == 2
    helper = UserFactory(is_staff=True)
    helper.user_permissions.add(Permission.objects.get(codename="view_modelcall"))
    client = Client()
    client.force_login(helper)
    path = reverse("admin:agents_modelcall_prompt", args=[first.pk])
    assert client.get(path).status_code == 403
    helper.user_permissions.add(Permission.objects.get(codename="view_thread"))
    assert client.get(path).status_code == 200
    client.force_login(UserFactory())
    assert client.get(path).status_code == 302


def test_what_was_sent_goes_with_its_goal(goal: Goal, say: Say, llm: LLMServer, desk: Client) -> None:
    llm.script([Reply("Hello.")])
    say("Hello")
    delete_goal(goal)
    assert not Prompt.objects.exists()
    shown = page(desk, ModelCall.objects.get())
    assert "was deleted" in shown
    assert "Hello" not in shown


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets days pass: for what is on record, and for what this process knows of it."""

    def pass_by(days: int) -> None:
        Prompt.objects.update(sent_at=F("sent_at") - timedelta(days=days))
        monkeypatch.setattr(kept, "_known", OrderedDict())

    return pass_by


def test_texts_that_were_not_sent_for_long_are_deleted_and_the_page_says_so(
    goal: Goal, say: Say, llm: LLMServer, desk: Client, long_ago: Callable[[int], None], settings: Settings
) -> None:
    llm.script([Reply("Hello.")])
    say("Good morning")
    llm.script([Reply(text=SUMMARY)], asks_for_summary)
    archiving.archive_session(goal.thread_id, ArchiveReason.IDLE)
    call, summary = ModelCall.objects.all()
    long_ago(29)
    monitor.run_if_due()
    assert titles(whole := page(desk, call))[:2] == ["core", "role"]
    assert ">Together<" in whole
    long_ago(2)
    HealthReport.objects.all().delete()
    monitor.run_if_due()
    assert not Prompt.objects.exists()
    shown = page(desk, call)
    assert shown.count("Not kept any more: it was not sent for 30 days") == 2, "the system prompt and the tools"
    assert shown.count("not kept any more</td>") == 2
    assert "Together, of what is kept" in shown
    assert sections(shown)[-1][1] == "Good morning", "the conversation is there as long as its goal"
    beside = page(desk, summary)
    assert beside.count("Not kept any more") == 2, "the system prompt, and what was asked"
    assert beside.count("not kept any more</td>") == 2
    settings.WAYMARK_PROMPTS_KEPT_DAYS = 0
    assert "deleted by an earlier setting" in page(desk, call)
    llm.script([Reply("Hello again.")])
    say("Good evening")
    long_ago(10_000)
    kept.forget()
    assert titles(page(desk, ModelCall.objects.latest("created_at")))[:2] == ["core", "role"]


def test_a_run_that_goes_on_after_weeks_has_its_prompt_on_record_again(
    say: Say, llm: LLMServer, desk: Client, rung: list[UUID], world: World, long_ago: Callable[[int], None]
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello"})]), Reply("It is sent.")])
    assert say("Write to them").status == RunStatus.WAITING_APPROVAL
    long_ago(31)
    kept.forget()
    assert not Prompt.objects.exists()
    action = AgentAction.objects.get()
    decisions.decide(action, action.user, ApprovalState.APPROVED, action.approval.digest)
    jobs.run(str(rung.pop()))
    first, last = ModelCall.objects.all()
    assert_as_sent(page(desk, last), llm.requests[-1])
    assert "Not kept any more" not in page(desk, first), "it was the same, so it is there again"


def test_what_is_sent_again_stays_however_old_it_is(
    goal: Goal, say: Say, llm: LLMServer, long_ago: Callable[[int], None]
) -> None:
    there = []
    for _ in range(3):
        llm.script([Reply("Hello.")])
        say("Hello")
        long_ago(20)
        kept.forget()
        there.append(set(Prompt.objects.values_list("pk", flat=True)))
    assert len(there[0]) == 2
    assert there[0] == there[1] == there[2]


def test_many_are_deleted_batch_by_batch_and_nobody_is_waited_for(
    goal: Goal, long_ago: Callable[[int], None], settings: Settings
) -> None:
    settings.WAYMARK_HEALTH_BATCH = 2
    kept.keep(goal.thread_id, *"abcdefg")
    long_ago(31)
    with transaction.atomic():
        held = Prompt.objects.select_for_update().get(text="b")
        kept.forget()
        assert Prompt.objects.get() == held
    kept.forget()
    assert not Prompt.objects.exists()


def test_a_process_says_again_after_an_hour_that_a_text_is_sent(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.keep(goal.thread_id, "core")
    at = Prompt.objects.get().sent_at
    kept.keep(goal.thread_id, "core")
    assert Prompt.objects.get().sent_at == at
    monkeypatch.setattr(kept, "KNOWN_SECONDS", 0)
    kept.keep(goal.thread_id, "core")
    assert Prompt.objects.get().sent_at > at
