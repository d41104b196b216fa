"""Plans of agents, and that a step is closed only by what was really done (mission A7, A8)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from agents.models import PlanItem
from agents.stopping import stop_run
from agents.undoing import take_back
from goals.models import Goal
from memory.models import AgentRun, Author, Note
from memory.notes import create_note
from tests.factories import GoalFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.world import World
from tools import filing
from tools.models import AgentAction
from tools.sandbox.folder import Folder

type Say = Callable[[str], AgentRun]
type Call = tuple[str, dict[str, Any]]

SHOES = {"title": "Find shoes", "subtasks": ["Write a list", "Keep it"]}
PLAN: Call = ("make_plan", {"tasks": [SHOES, {"title": "Buy", "subtasks": ["Ask"]}]})
LIST: Call = ("write_file", {"path": "list.md", "content": "- red"})
NOTE: Call = ("create_note", {"title": "Shoes", "body": "red"})


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"


def closes(*evidence: tuple[str, str], subtask: str = "1.1", success: bool = True, reason: str = "It is done.") -> Call:
    named = [{"kind": kind, "name": name} for kind, name in evidence]
    return (
        "mark_subtask_complete",
        {"subtask": subtask, "success": success, "reason": reason, "evidence": named},
    )


def does(say: Say, llm: LLMServer, *calls: Call) -> list[str]:
    """Let the agent make these calls, one in each reply; returns the results."""
    llm.reset()
    llm.script([*(Reply(calls=[call]) for call in calls), Reply(text="All is done.")])
    say("Go on")
    results = [str(message["content"]) for message in llm.requests[-1].messages if message["role"] == "tool"]
    return results[-len(calls) :] if calls else []


def states(goal: Goal) -> dict[str, str]:
    return dict(PlanItem.objects.for_user(goal.user).current().values_list("number", "status"))


def test_a_plan_is_made_closed_step_by_step_and_told_of(goal: Goal, say: Say, llm: LLMServer) -> None:
    told = does(say, llm, PLAN, LIST, closes(("file", "list.md")), NOTE, closes(("note", "shoes"), subtask="1.2"))
    assert told[0].endswith("Next: 1.1 Write a list")
    assert told[2].endswith("Next: 1.2 Keep it")
    assert states(goal) == {"1": "done", "1.1": "done", "1.2": "done", "2": "open", "2.1": "open"}
    items = {item.number: item for item in PlanItem.objects.current()}
    assert [each["words"] for each in items["1.1"].evidence] == ["list.md"]
    assert items["1.2"].reason == "It is done."
    llm.script([Reply(text="I shall ask.")])
    say("And now?")
    assert "<plan>\n1 Find shoes [done]" in llm.requests[-1].last_user_text
    assert "2.1 Ask [open]" in llm.requests[-1].last_user_text
    (end,) = does(say, llm, closes(subtask="2.1", success=False, reason="Nobody answers."))
    assert end.endswith("All subtasks are closed: tell the user what came of them.")
    assert states(goal)["2"] == "failed"
    llm.script([Reply(text="Good.")])
    say("Thank you")
    assert "<plan>" not in llm.requests[-1].last_user_text


@pytest.mark.parametrize("tool", ["write_file", "create_note"])
def test_an_action_proves_a_step_by_its_tool_or_its_id(goal: Goal, say: Say, llm: LLMServer, tool: str) -> None:
    does(say, llm, PLAN, LIST, NOTE)
    action = str(AgentAction.objects.get(tool=tool).pk)
    does(say, llm, closes(("action", action)))
    does(say, llm, closes(("action", {"write_file": "create_note", "create_note": "write_file"}[tool]), subtask="1.2"))
    assert states(goal)["1"] == "done"


def test_a_new_plan_takes_the_place_of_the_old_and_a_step_is_closed_once(goal: Goal, say: Say, llm: LLMServer) -> None:
    told = does(say, llm, PLAN, LIST, closes(("file", "list.md")), closes(("file", "list.md")), closes(subtask="7"))
    assert told[3].startswith("Error: Subtask 1.1 is done already.")
    assert told[4] == "Error: There is no subtask '7'. Open ones: 1.2, 2.1."
    does(say, llm, ("make_plan", {"tasks": [{"title": "Rest", "subtasks": ["Sleep"]}]}))
    assert states(goal) == {"1": "open", "1.1": "open"}
    assert PlanItem.objects.filter(status="done").count() == 0, "what was closed went with its plan"
    assert PlanItem.objects.filter(evidence__0__words="list.md").count() == 1, "but stays on record"


def nothing(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It names nothing."""
    return closes()


def only_words(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It has only said so."""
    does(say, llm, ("send_message", {"text": "I have written the list."}))
    return closes(("action", "send_message"))


def its_plan(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It has planned it."""
    return closes(("action", "make_plan"))


def no_such_action(goal: Goal, say: Say, llm: LLMServer) -> Call:
    return closes(("action", str(goal.pk)))


def never_called(goal: Goal, say: Say, llm: LLMServer) -> Call:
    return closes(("action", "write_file"))


def failed(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It has tried."""
    does(say, llm, ("write_file", {"path": "../list.md", "content": "x"}))
    return closes(("action", "write_file"))


def denied(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It waits for its user's word."""
    does(say, llm, ("send_email", {"text": "hello"}))
    stop_run(AgentRun.objects.latest("created_at"))
    return closes(("action", "send_email"))


def undone(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """Its user has taken it back."""
    does(say, llm, NOTE)
    take_back(AgentAction.objects.get(tool="create_note"), goal.user)
    return closes(("action", "create_note"))


def undone_by_itself(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It has taken it back itself, and names the undo."""
    does(say, llm, NOTE)
    does(say, llm, ("undo_action", {"id": str(AgentAction.objects.get(tool="create_note").pk)}))
    return closes(("action", "undo_action"))


def no_file(goal: Goal, say: Say, llm: LLMServer) -> Call:
    return closes(("file", "list.md"))


def outside(goal: Goal, say: Say, llm: LLMServer) -> Call:
    return closes(("file", "../../etc/passwd"))


def a_file_of_the_user(goal: Goal, say: Say, llm: LLMServer) -> Call:
    filing.add_file(goal.thread, "list.md", 1, iter([b"x"]))
    return closes(("file", "list.md"))


def a_deleted_file(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, LIST, ("delete_file", {"path": "list.md"}))
    return closes(("file", "list.md"))


def a_changed_file(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """Somebody else has written over it."""
    does(say, llm, LIST)
    (Folder(goal.thread_id).files / "list.md").write_text("of somebody else")
    return closes(("file", "list.md"))


def an_older_file(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It was there before the plan."""
    does(say, llm, LIST, PLAN)
    return closes(("file", "list.md"))


def an_older_action(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, LIST, PLAN)
    return closes(("action", "write_file"))


def a_note_of_the_user(goal: Goal, say: Say, llm: LLMServer) -> Call:
    create_note(goal.thread, "Shoes", "red", Author.USER)
    return closes(("note", "Shoes"))


def a_note_of_another_goal(goal: Goal, say: Say, llm: LLMServer) -> Call:
    other = create_note(GoalFactory.create(user=goal.user).thread, "Shoes", "red", Author.AGENT)
    return closes(("note", str(other.pk)))


def half_true(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """One of two things is there."""
    does(say, llm, LIST)
    return closes(("file", "list.md"), ("note", "Shoes"))


def twice(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It was the proof of another step."""
    does(say, llm, LIST, closes(("file", "list.md"), subtask="1.2"))
    return closes(("file", "list.md"))


def without_words(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, LIST)
    return closes(("file", "list.md"), reason=" ")


LIES = (nothing, only_words, its_plan, no_such_action, never_called, failed, denied, undone, undone_by_itself, no_file)
MORE = (outside, a_file_of_the_user, a_deleted_file, a_changed_file, an_older_file, an_older_action)
NOTES = (a_note_of_the_user, a_note_of_another_goal, half_true, twice, without_words)


@pytest.mark.parametrize("lie", [*LIES, *MORE, *NOTES], ids=lambda lie: lie.__name__)
def test_a_model_that_lies_closes_nothing(
    lie: Callable[[Goal, Say, LLMServer], Call], goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    does(say, llm, PLAN)
    claim = lie(goal, say, llm)
    does(say, llm, claim)
    assert AgentAction.objects.filter(tool="mark_subtask_complete").latest("created_at").status == "error"
    assert states(goal)["1.1"] == "open"


def test_a_step_that_a_helper_has_done_is_proven_by_what_it_did(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[PLAN]), Reply(calls=[("create_task", {"title": "Look", "instructions": "Look it up"})])])
    llm.script([Reply(calls=[("write_file", {"path": "found.md", "content": "red"})]), Reply("Found.")], "Look it up")
    llm.always(Reply("Good."))
    say("Go on")
    helper = AgentAction.objects.get(tool="write_file")
    assert helper.thread_id != goal.thread_id
    llm.reset()
    does(say, llm, closes(("action", str(helper.pk))))
    assert states(goal)["1.1"] == "done"


def test_a_user_sees_the_plan_beside_the_conversation(goal: Goal, say: Say, llm: LLMServer, client: Any) -> None:
    does(say, llm, PLAN, LIST, closes(("file", "list.md"), reason="It has <three> lines."))
    client.force_login(goal.user)
    page = client.get(f"/goals/{goal.pk}/").content.decode()
    assert "Write a list" in page
    assert "It has &lt;three&gt; lines." in page
    assert Note.objects.count() == 0
