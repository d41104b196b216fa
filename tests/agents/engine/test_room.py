"""Agents are told when there is no room for what they write, and lose nothing by it (threat T16)."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from agents import undoing
from agents.refusals import Refused
from goals.models import Goal
from memory.models import AgentRun, Document, Note, ThreadMessage
from memory.notes import create_note
from memory.room import ROW
from tests.agents.engine.test_calls import answers
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]


def test_an_agent_is_told_that_there_is_no_room(goal: Goal, say: Say, llm: LLMServer, settings: Settings) -> None:
    note = create_note(goal.thread, "Shoes", "blue")
    settings.WAYMARK_TEXT_QUOTA = ROW
    calls = [
        ("create_note", {"title": "Socks", "body": "red"}),
        ("update_note", {"id": str(note.pk), "body": "green"}),
        ("append_daily_note", {"text": "Looked at shoes."}),
        ("write_document", {"name": "MEMORY", "text": "Likes blue."}),
        ("manage_learning", {"text": "Likes blue."}),
    ]
    llm.script([Reply(calls=calls), Reply("There is no room.")])
    say("Write that down")
    assert ["There is no room for it" in answer for answer in answers(llm)] == [True] * 5
    assert [each.body for each in Note.objects.all()] == ["blue"]
    assert not Document.objects.exists()


def test_what_does_not_fit_any_more_is_not_undone(goal: Goal, say: Say, llm: LLMServer, settings: Settings) -> None:
    note = create_note(goal.thread, "Shoes", "x" * 500)
    llm.script([Reply(calls=[("delete_note", {"id": str(note.pk)})]), Reply("Deleted.")])
    say("Delete it")
    create_note(goal.thread, "Socks", "red")
    settings.WAYMARK_TEXT_QUOTA = 2 * ROW + 100
    with pytest.raises(Refused, match="no room for it"):
        undoing.take_back(AgentAction.objects.get(), goal.user)
    assert Note.objects.count() == 1
    settings.WAYMARK_TEXT_QUOTA = 3 * ROW
    undoing.take_back(AgentAction.objects.get(), goal.user)
    assert Note.objects.get(title="Shoes").body == "x" * 500


def test_a_report_that_fits_no_note_reaches_whom_it_is_for(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_TEXT_QUOTA = 1
    task = {"title": "Shoes", "instructions": "Find some.", "report_as_note": True}
    llm.script(
        [Reply(calls=[("create_task", task)]), Reply("Sent off."), Reply("Red ones."), Reply("It found red ones.")]
    )
    say("Find shoes")
    assert not Note.objects.exists()
    assert ThreadMessage.objects.filter(thread=goal.thread, content="It found red ones.").exists()
