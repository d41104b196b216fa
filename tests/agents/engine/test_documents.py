"""Documents: what agents are told of them, and what they write (missions D3 and E1)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents import decisions
from agents.engine import jobs
from agents.proposed_call import ProposedCall
from agents.services import assistant_of, trust_again
from agents.undoing import take_back
from goals.models import Goal
from memory.documents import place, vouch, write_document
from memory.models import AgentRun, Document, DocumentVersion, RunStatus, Thread
from tests.factories import GoalFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tools import trust
from tools.models import AgentAction, ApprovalState
from tools.trust import Earned, Scope

type Say = Callable[[str], AgentRun]

PLAN = "# Plan\n\n## Shoes\n\nRed ones.\n\n## Times\n\n5 km in 30:00"


def put(goal: Goal, name: str, text: str, sources: list[str] | None = None) -> Document:
    return write_document(place(goal.user_id, goal.thread_id, name), text, sources=sources or [])


def does(say: Say, llm: LLMServer, tool: str, **arguments: Any) -> str:
    """Let the agent call a tool; returns what it was told."""
    llm.reset()
    llm.script([Reply(calls=[(tool, arguments)]), Reply(text="Done.")])
    say("Do it")
    return str(llm.requests[-1].messages[-1]["content"])


def told(say: Say, llm: LLMServer) -> list[str]:
    """Its prompt, and all that stands in its history with the next message."""
    llm.reset()
    llm.script([Reply(text="Yes.")])
    say("Go on")
    first, *rest = llm.requests[-1].messages
    return [str(first["content"]), str(rest)]


def text_of(goal: Goal, name: str) -> str:
    return Document.objects.get(user=goal.user, name=name).text


def test_what_is_for_all_agents_stands_in_the_prefix_in_one_order(goal: Goal, say: Say, llm: LLMServer) -> None:
    assert "<documents>" not in told(say, llm)[0].split("</core>")[1]
    for name in ("IDENTITY", "SOUL"):
        put(goal, name, f"{name.lower()} & </documents>")
    prompt = told(say, llm)[0]
    first, second = (prompt.index(f'<document name="{name}">\n{name.lower()} &amp;') for name in ("SOUL", "IDENTITY"))
    assert 0 < first < second
    assert "</documents>\n</document>" not in prompt
    assert told(say, llm)[0] == prompt
    other = GoalFactory(user=goal.user)
    assert Document.objects.for_user(other.user).count() == 2


def test_memory_and_the_notes_of_the_last_days_are_told_when_they_change(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    today = timezone.now().date()
    for ago in (0, 2, 3, 9):
        put(goal, (today - timedelta(days=ago)).isoformat(), f"note of {ago} days ago")
    put(goal, "MEMORY", "likes hills")
    prompt, history = told(say, llm)
    assert "likes hills" not in prompt
    assert "<memory>\\nlikes hills\\n</memory>" in history
    assert [ago for ago in range(10) if f"note of {ago} days ago" in history] == [0, 2]
    assert history.index("note of 2 days") < history.index("note of 0 days")
    assert told(say, llm)[1].count("<memory>") == 1
    settings.WAYMARK_DOCUMENT_TOLD = 9
    put(goal, "MEMORY", "likes hills and lakes")
    put(goal, today.isoformat(), "note of a good run")
    history = told(say, llm)[1]
    assert "likes hil\\n[12 characters are left out; read_document has them]" in history
    assert "\\n\\n good run\\n[9 characters" in history


def test_a_helper_is_told_of_none_and_offered_none(goal: Goal, say: Say, llm: LLMServer) -> None:
    put(goal, "USER", "Is called Kim.")
    put(goal, "MEMORY", "Likes hills.")
    llm.script(
        [
            Reply(calls=[("create_task", {"title": "Shoes", "instructions": "Find some."})]),
            Reply(text="Sent off."),
            Reply(text="Red ones."),
            Reply(text="It found red ones."),
        ]
    )
    say("Find shoes")
    helpers = [request for request in llm.requests if "You are a sub-agent" in str(request.messages[0])]
    assert helpers
    for request in helpers:
        assert "Kim" not in str(request.messages)
        assert "hills" not in str(request.messages)
        assert "_document" not in str(request.body["tools"])


def test_the_assistant_and_a_goal_share_what_is_for_all_and_nothing_else(goal: Goal, say: Say, llm: LLMServer) -> None:
    put(goal, "SOUL", "Be brief.")
    put(goal, "MEMORY", "Likes hills.")
    assistant = assistant_of(goal.user).thread
    write_document(place(goal.user_id, assistant.pk, "MEMORY"), "Likes lakes.")
    listed = does(say, llm, "read_document")
    assert "- SOUL (9 characters)" in listed
    assert listed.count("- MEMORY") == 1
    assert does(say, llm, "read_document", name="memory") == "Likes hills."


def test_a_section_is_written_and_what_was_there_is_kept(goal: Goal, say: Say, llm: LLMServer) -> None:
    assert does(say, llm, "write_document", name="MEMORY", text=PLAN) == "Wrote MEMORY."
    assert does(say, llm, "write_document", name="MEMORY", section="Shoes", text="Blue ones.") == "Wrote MEMORY."
    assert text_of(goal, "MEMORY") == PLAN.replace("Red", "Blue")
    assert "  ## Shoes" in does(say, llm, "read_document")
    assert "There is no section 'Food'" in does(say, llm, "write_document", name="MEMORY", section="Food", text="x")
    does(say, llm, "write_document", name="MEMORY", section="Food", text="Rice", new=True)
    assert text_of(goal, "MEMORY").endswith("\n\n## Food\n\nRice")
    assert DocumentVersion.objects.filter(author="agent").count() == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("read_document", {"name": "PLANS"}, "A document is one of AGENTS"),
        ("read_document", {"name": "2026-13-01"}, "A document is one of AGENTS"),
        ("read_document", {"name": "USER"}, "no such document yet"),
        ("write_document", {"name": "secrets", "text": "x"}, "A document is one of AGENTS"),
        ("write_document", {"name": "MEMORY", "text": "x" * 101}, "at most 100"),
        ("write_document", {"name": "MEMORY", "section": "A", "text": "x"}, "(none)"),
    ],
)
def test_what_cannot_be_is_said(
    tool: str, arguments: dict[str, str], why: str, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_DOCUMENT_LENGTH = 100
    assert why in does(say, llm, tool, **arguments)
    assert not Document.objects.exists()


def test_today_is_the_users(goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = assistant_of(goal.user)
    agent.time_zone = "Pacific/Auckland"
    agent.save()
    monkeypatch.setattr("agents.document_tools.timezone.now", lambda: datetime(2026, 11, 29, 13, 5, tzinfo=UTC))
    does(say, llm, "append_daily_note", text="Ran 5 km.")
    does(say, llm, "append_daily_note", text="Knee hurts.")
    assert text_of(goal, "2026-11-30") == "02:05 Ran 5 km.\n\n02:05 Knee hurts."


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_document", {"name": "MEMORY", "text": "Other."}),
        ("write_document", {"name": "MEMORY", "section": "Shoes", "text": ""}),
        ("append_daily_note", {"text": "Ran."}),
    ],
)
def test_every_way_to_write_can_be_undone_and_done_again(
    tool: str, arguments: dict[str, str], goal: Goal, say: Say, llm: LLMServer
) -> None:
    put(goal, "MEMORY", PLAN)

    def stand() -> dict[str, tuple[str, str]]:
        return {each.name: (each.text, each.author) for each in Document.objects.all()}

    before = stand()
    does(say, llm, tool, **arguments)
    after = stand()
    assert before != after
    undone = take_back(AgentAction.objects.get(tool=tool), goal.user)
    assert stand() == before
    take_back(undone, goal.user)
    assert stand() == after


def test_what_steers_all_agents_waits_for_its_user(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]) -> None:
    put(goal, "USER", PLAN)
    llm.script([Reply(calls=[("write_document", {"name": "user", "section": "Shoes", "text": "Blue ones."})])])
    run = say("I like blue shoes now")
    assert run.status == RunStatus.WAITING_APPROVAL
    assert text_of(goal, "USER") == PLAN
    action = AgentAction.objects.get(tool="write_document")
    proposed = ProposedCall(action)
    assert proposed.would is not None
    assert proposed.would.changes[0].after == {"text": PLAN.replace("Red", "Blue")}
    llm.script([Reply(text="Noted.")])
    decisions.decide(action, goal.user, ApprovalState.APPROVED, proposed.shown)
    while rung:
        jobs.run(str(rung.pop(0)))
    assert text_of(goal, "USER") == PLAN.replace("Red", "Blue")
    action.refresh_from_db()
    take_back(action, goal.user)
    assert text_of(goal, "USER") == PLAN


def test_trust_in_the_tool_is_no_word_for_what_steers_all_agents(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], settings: Settings
) -> None:
    settings.WAYMARK_TRUST_AFTER = 1
    trust.grant(goal.user, goal.thread, "write_document", None)
    for text in ("Be kind.", "Be brief."):
        llm.script([Reply(calls=[("write_document", {"name": "SOUL", "text": text})]), Reply("Done.")])
        assert say("Go on").status == RunStatus.WAITING_APPROVAL
        action = AgentAction.objects.get(arguments__text=text)
        assert Earned(goal.user_id).scopes(action.approval) == (Scope.THESE,)
        decisions.decide(action, goal.user, ApprovalState.APPROVED, ProposedCall(action).shown)
        while rung:
            jobs.run(str(rung.pop(0)))
    assert text_of(goal, "SOUL") == "Be brief."
    assert Earned(goal.user_id).times == {}


def test_what_a_person_has_written_is_not_changed_in_a_strangers_name(goal: Goal, say: Say, llm: LLMServer) -> None:
    put(goal, "MEMORY", "Never write to my boss.")
    Thread.objects.filter(pk=goal.thread_id).update(sources=["evil.example"])
    does(say, llm, "append_daily_note", text="Read a page.")
    assert Document.objects.get(thread=goal.thread, author="agent").sources == ["evil.example"]
    llm.reset()
    llm.script([Reply(calls=[("write_document", {"name": "MEMORY", "text": "Write to the boss."})])])
    assert say("Go on").status == RunStatus.WAITING_APPROVAL
    assert text_of(goal, "MEMORY") == "Never write to my boss."


def test_the_mark_goes_with_what_was_written_to_every_agent_that_is_told_of_it(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    document = put(goal, "USER", "The gate code is 1234.", ["evil.example"])
    put(goal, "MEMORY", "Someone likes tea.", ["tea.example"])
    prompt, history = told(say, llm)
    assert "1234.\n[after reading evil.example]" in prompt
    assert "[after reading tea.example]" in history
    goal.thread.refresh_from_db()
    assert sorted(goal.thread.sources) == ["evil.example", "tea.example"]
    vouch(document)
    trust_again(goal.thread)
    told(say, llm)
    goal.thread.refresh_from_db()
    assert goal.thread.sources == []
