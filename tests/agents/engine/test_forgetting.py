"""What relied on a source is listed, and goes in one deed that can be undone (mission E5)."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from agents import services
from agents.engine import archiving, jobs
from agents.services import assistant_of
from agents.undoing import take_back
from goals.models import Goal, Measurement, Schedule
from memory.archive import Outcome
from memory.documents import place, write_document
from memory.models import AgentHistory, AgentRun, ArchiveReason, Document, Learning, Note, Thread, ThreadMessage
from memory.notes import create_note
from memory.recall import last_summaries
from tests.factories import AgentHistoryFactory, GoalFactory, NoteFactory, TargetFactory, ThreadMessageFactory, bearer
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.queries import queries
from tools import files
from tools.file_models import Writer
from tools.forgetting import (
    Basis,
    forget,
    of_document,
    of_file,
    of_message,
    of_note,
    of_session,
    relied_on,
)
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]
type Call = tuple[str, dict[str, Any]]

LEARN: Call = ("manage_learning", {"text": "Runs in the morning."})
WRITE: Call = ("create_note", {"title": "Plan", "body": "Mornings."})
LOG: Call = ("append_daily_note", {"text": "Made a plan."})


def does(say: Say, llm: LLMServer, *steps: Call, said: str = "Go on") -> AgentRun:
    """Let the agent make calls, one in each step."""
    llm.reset()
    llm.script([*(Reply(calls=[step]) for step in steps), Reply(text="Done.")])
    return say(said)


def listed(basis: Basis) -> list[tuple[str, str, bool]]:
    return [(each.kind, each.name, each.made) for each in relied_on(basis)]


@pytest.fixture
def browser(goal: Goal) -> Client:
    browser = Client()
    browser.force_login(goal.user)
    return browser


def test_what_was_written_after_a_note_was_read_relied_on_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    note = create_note(goal.thread, "Doctor", "Says: only mornings.")
    does(say, llm, ("create_note", {"title": "Before", "body": "x"}), ("read_note", {"id": str(note.pk)}), LEARN, WRITE)
    does(say, llm, ("search_notes", {"query": "doctor"}), LOG)
    does(say, llm, ("create_note", {"title": "Another run", "body": "x"}))
    assert listed(of_note(note)) == [
        ("note", "Doctor", True),
        ("learning", "Runs in the morning.", True),
        ("note", "Plan", True),
        ("document", Document.objects.get().name, True),
    ]


def test_all_of_it_goes_at_once_and_comes_back_at_once(goal: Goal, say: Say, llm: LLMServer) -> None:
    note = create_note(goal.thread, "Doctor", "Says: only mornings.")
    does(say, llm, ("manage_learning", {"text": "Runs at night."}))
    replacing = ("manage_learning", {"text": "Runs in the morning.", "replaces": 1})
    does(say, llm, ("read_note", {"id": str(note.pk)}), replacing, WRITE, LOG)

    def stand() -> list[list[dict[str, Any]]]:
        rows: list[list[dict[str, Any]]] = [
            [*model.objects.order_by("pk").values()] for model in (Note, Learning, Document)
        ]
        return [[row | {"updated_at": None} for row in each] for each in rows]

    before = stand()
    found = relied_on(of_note(note))
    action = forget(of_note(note), [each.key for each in found])
    assert action is not None
    assert (action.tool, action.summary, action.run) == ("forget_source", "Doctor", None)
    assert [row["number"] for row in stand()[1]] == [1]
    assert not Note.objects.exists()
    assert not Document.objects.exists()
    assert "wants you to forget what came of: Doctor" in Thread.objects.get(pk=goal.thread_id).news
    undone = take_back(action, goal.user)
    assert stand() == before
    take_back(undone, goal.user)
    assert [row["number"] for row in stand()[1]] == [1]


def test_whatever_an_agent_wrote_then_is_listed_and_goes(
    goal: Goal, say: Say, llm: LLMServer, browser: Client, rung: list[UUID]
) -> None:
    note = create_note(goal.thread, "Doctor", "x")
    TargetFactory(thread=goal.thread)
    files.write(goal.thread_id, "old.txt", iter([b"old"]), files.Hand(Writer.USER))
    writes = ("write_file", {"path": "docs/plan.txt", "content": "Mornings."})
    changes = ("write_file", {"path": "old.txt", "content": "Mornings."})
    follows = ("schedule_follow_up", {"intent": "Ask how the morning was", "hours": 5})
    measures = ("record_measurement", {"value": 70})
    does(say, llm, ("read_note", {"id": str(note.pk)}), writes, changes, follows, measures)
    assert listed(of_note(note)) == [
        ("note", "Doctor", True),
        ("file", "old.txt", False),
        ("file", "docs/plan.txt", True),
        ("measurement", "70", True),
        ("schedule", "Ask how the morning was", True),
    ]
    page = f"/forget/note/{note.pk}/"
    assert browser.get(page).status_code == 200
    keys = [each.key for each in relied_on(of_note(note)) if each.made]
    browser.post(page, {"keys": keys})
    workspace = Path(settings.WAYMARK_WORKSPACES) / str(goal.thread_id)
    found = {path.name: path.read_text() for path in workspace.rglob("*.txt")}
    assert found == {"old.txt": "Mornings."}
    assert not Measurement.objects.exists()
    assert not Schedule.objects.filter(kind="once").exists()
    take_back(AgentAction.objects.get(tool="forget_source"), goal.user)
    assert next(workspace.rglob("plan.txt")).read_text() == "Mornings."
    assert Measurement.objects.get().value == 70
    assert Schedule.objects.get(kind="once").intent == "Ask how the morning was"


def test_what_the_assistant_wrote_after_it_had_looked_there_relied_on_it(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    note = create_note(goal.thread, "Doctor", "x")
    reads = ("read_goal", {"goal": goal.title, "note": "doctor"})
    llm.script([Reply(calls=[reads]), Reply(calls=[LEARN]), Reply("Done.")])
    services.send_message(assistant_of(goal.user).thread, "And?")
    while rung:
        jobs.run(str(rung.pop(0)))
    assert listed(of_note(note)) == [("note", "Doctor", True), ("learning", "Runs in the morning.", True)]


def test_only_what_was_ticked_goes_and_only_what_relied_on_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    note, other = create_note(goal.thread, "Doctor", "x"), create_note(goal.thread, "Other", "x")
    theirs = NoteFactory()
    does(say, llm, ("read_note", {"id": str(note.pk)}), LEARN, WRITE)
    learning = Learning.objects.get()
    keys = [f"learning:{learning.pk}", f"note:{other.pk}", f"note:{theirs.pk}", "note:x", "user:1"]
    assert forget(of_note(note), keys) is not None
    assert {each.title for each in Note.objects.all()} == {"Doctor", "Other", "Plan", theirs.title}
    assert not Learning.objects.exists()
    assert forget(of_note(note), keys) is None


def test_a_message_a_file_and_a_document(goal: Goal, say: Say, llm: LLMServer) -> None:
    does(say, llm, LEARN, said="I only run in the morning")
    message = ThreadMessage.objects.get(content="I only run in the morning")
    message.created_at = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)
    with timezone.override("Europe/Berlin"):
        assert of_message(message).label == "your message of 30 November 2026, 00:30"
    assert listed(of_message(message)) == [("learning", "Runs in the morning.", True)]
    files.write(goal.thread_id, "docs/plan.txt", iter([b"x"]), files.Hand(Writer.USER))
    does(say, llm, ("read_file", {"path": "docs/plan.txt"}), WRITE)
    assert listed(of_file(goal.thread, "docs/plan.txt")) == [("note", "Plan", True)]
    assert listed(of_file(goal.thread, "docs/other.txt")) == []
    for name in ("USER", "MEMORY"):
        document = write_document(place(goal.user_id, goal.thread_id, name), "x")
        text = f"From {name}"
        does(say, llm, ("read_document", {"name": name.lower()}), ("create_note", {"title": text, "body": "x"}))
        basis = of_document(document, assistant_of(goal.user).thread)
        assert listed(basis) == [("document", name, True), ("note", text, True)]


def test_what_was_only_changed_says_so(goal: Goal, say: Say, llm: LLMServer) -> None:
    note, plan = create_note(goal.thread, "Doctor", "x"), create_note(goal.thread, "Plan", "x")
    does(say, llm, ("read_note", {"id": str(note.pk)}), ("update_note", {"id": str(plan.pk), "body": "y"}))
    assert listed(of_note(note)) == [("note", "Doctor", True), ("note", "Plan", False)]


def test_a_session_is_forgotten_by_agents_and_stays_with_its_user(
    goal: Goal, say: Say, llm: LLMServer, browser: Client
) -> None:
    note = create_note(goal.thread, "Doctor", "x")
    does(say, llm, ("read_note", {"id": str(note.pk)}), LEARN, said="A secret walrus")
    llm.reset()
    llm.script([Reply(text="Of walruses\n\nThey spoke of a walrus.")])
    assert archiving.archive_session(goal.thread_id, ArchiveReason.BY_HAND, at_once=True) is Outcome.DONE
    session = AgentHistory.objects.get()
    assert [kind for kind, _name, _made in listed(of_session(session))] == ["session", "learning"]
    assert [kind for kind, _name, _made in listed(of_note(note))] == ["note", "learning", "session"]
    assert last_summaries(goal.thread_id) != []
    action = forget(of_note(note), [f"session:{session.pk}"])
    assert action is not None
    assert last_summaries(goal.thread_id) == []
    found = does(say, llm, ("search_agent_history", {"query": "walrus"}))
    assert "No earlier session was found" in AgentAction.objects.get(run=found, tool="search_agent_history").output
    shown = browser.get(f"/sessions/{session.pk}/").text
    assert "A secret walrus" in shown
    assert "Your agent has forgotten this session" in shown
    take_back(action, goal.user)
    assert last_summaries(goal.thread_id) != []


def test_a_person_ticks_what_goes(goal: Goal, say: Say, llm: LLMServer, browser: Client) -> None:
    note = create_note(goal.thread, "Doctor <b>", "x")
    does(say, llm, ("read_note", {"id": str(note.pk)}), LEARN, WRITE)
    page = f"/forget/note/{note.pk}/"
    assert page in browser.get(f"/notes/{note.pk}/").text
    shown = browser.get(page).text
    assert "Doctor &lt;b&gt;" in shown
    assert shown.count('name="keys"') == 3
    assert "Nothing was ticked" in browser.post(page, follow=True).text
    learning = Learning.objects.get()
    answer = browser.post(page, {"keys": [f"note:{note.pk}", f"learning:{learning.pk}"]}, follow=True)
    assert "Forgotten: what came of “Doctor &lt;b&gt;”" in answer.text
    assert not Learning.objects.exists()
    assert browser.get(page).status_code == 404
    action = AgentAction.objects.get(tool="forget_source")
    browser.post(f"/actions/{action.pk}/undo")
    assert Learning.objects.get() == learning
    assert Note.objects.get(pk=note.pk).title == "Doctor <b>"
    message = ThreadMessage.objects.get(source="user")
    assert f"/forget/message/{message.pk}/" in browser.get(f"/threads/{goal.thread_id}/memory/").text
    assert "Runs in the morning." in browser.get(f"/forget/message/{message.pk}/").text
    assert "Nothing relied on it" in browser.get(f"/forget/file/{goal.thread_id}/?path=x").text


def test_nobody_else_forgets_it(goal: Goal, browser: Client) -> None:
    theirs = GoalFactory()
    document = write_document(place(theirs.user_id, theirs.thread_id, "USER"), "x")
    addresses = [
        f"/forget/message/{ThreadMessageFactory().pk}/",
        *(f"/forget/note/{NoteFactory().pk}/", f"/forget/session/{AgentHistoryFactory().pk}/"),
        *(f"/forget/document/{document.pk}/", f"/forget/file/{theirs.thread_id}/", f"/forget/goal/{goal.pk}/"),
    ]
    for address in addresses:
        assert browser.get(address).status_code == 404, address
        assert browser.post(address).status_code == 404, address
    assert browser.get(f"/forget/file/{goal.thread_id}/?path=%00").status_code == 200


def test_over_the_api(goal: Goal, say: Say, llm: LLMServer) -> None:
    note = create_note(goal.thread, "Doctor", "x")
    run = does(say, llm, ("read_note", {"id": str(note.pk)}), LEARN)
    api, address = Client(headers=bearer(goal.user)), f"/api/v1/notes/{note.pk}/relied-on"
    own, learning = api.get(address).json()["results"]
    assert (own["kind"], own["run"]) == ("note", None)
    assert (learning["kind"], learning["made"], learning["run"]) == ("learning", True, str(run.pk))
    json = "application/json"
    assert api.post(address, {"keys": []}, json).status_code == 400
    assert api.post(address, {"keys": [learning["key"]]}, json).json()["tool"] == "forget_source"
    assert not Learning.objects.exists()
    assert [each["kind"] for each in api.get(address).json()["results"]] == ["note"]


def test_a_long_list_takes_no_more_queries_than_a_short_one(
    goal: Goal, say: Say, llm: LLMServer, browser: Client
) -> None:
    note = create_note(goal.thread, "Doctor", "x")

    def rely(text: str) -> None:
        run = does(say, llm, ("read_note", {"id": str(note.pk)}), ("manage_learning", {"text": text}), WRITE, LOG)
        AgentHistoryFactory(thread=goal.thread, entries=[{"run": str(run.pk)}])

    def look() -> None:
        shown = browser.get(f"/forget/note/{note.pk}/").text
        assert f"#l{Learning.objects.latest('number').number}" in shown

    rely("one")
    look()
    few, short = queries(look), len(relied_on(of_note(note)))
    for text in ("two", "three", "four"):
        rely(text)
    assert (queries(look), len(relied_on(of_note(note)))) == (few, short + 9)
