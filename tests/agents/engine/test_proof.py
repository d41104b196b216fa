"""Done means proven: what a model may name that proves nothing, and why it is told so (missions A8 and H3)."""

from collections.abc import Callable

import pytest

from agents.stopping import stop_run
from agents.undoing import take_back
from goals.models import Goal
from memory.models import AgentRun, Author
from memory.notes import create_note
from tests.agents.engine.test_plans import LIST, NOTE, PLAN, Call, Say, closes, does, states, workspaces as workspaces
from tests.factories import GoalFactory
from tests.llm_server import LLMServer
from tests.world import World
from tools import filing
from tools.models import AgentAction
from tools.sandbox.folder import Folder

type Lie = Callable[[Goal, Say, LLMServer], Call]

GONE = "proves nothing: what it did is gone, or somebody else has changed it since."
NOT_WRITTEN = "is there, but you have not written it since the plan was made."


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


def only_looks(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It has read what is here."""
    does(say, llm, ("list_notes", {}))
    return closes(("action", "list_notes"))


def a_look_into_a_file(goal: Goal, say: Say, llm: LLMServer) -> Call:
    filing.add_file(goal.thread, "list.md", 1, iter([b"x"]))
    does(say, llm, ("read_file", {"path": "list.md"}))
    return closes(("action", "read_file"))


LIES: dict[Lie, str] = {
    nothing: "Name what proves it",
    only_words: "no action 'send_message' that can prove a step",
    only_looks: "no action 'list_notes' that can prove a step",
    a_look_into_a_file: "no action 'read_file' that can prove a step",
    its_plan: "no action 'make_plan' that can prove a step",
    no_such_action: "that can prove a step",
    never_called: "no action 'write_file' that can prove a step",
    failed: "its outcome is error.",
    denied: "its outcome is cancelled.",
    undone: "it was undone.",
    undone_by_itself: "no action 'undo_action' that can prove a step",
    no_file: "There is no file 'list.md'",
    outside: "There is no file '../../etc/passwd'",
    a_file_of_the_user: NOT_WRITTEN,
    a_deleted_file: "There is no file 'list.md'",
    a_changed_file: GONE,
    an_older_file: NOT_WRITTEN,
    an_older_action: "no action 'write_file' that can prove a step",
    a_note_of_the_user: NOT_WRITTEN,
    a_note_of_another_goal: "There is no note",
    half_true: "There is no note 'Shoes'",
    twice: "has proved subtask 1.2 already",
    without_words: "Say what came of it",
}


def closes_nothing(lie: Lie, why: str, goal: Goal, say: Say, llm: LLMServer) -> None:
    """A lie is refused, and the model is told why."""
    does(say, llm, PLAN)
    claim = lie(goal, say, llm)
    (told,) = does(say, llm, claim)
    assert why in told
    assert AgentAction.objects.filter(tool="mark_subtask_complete").latest("created_at").status == "error"
    assert states(goal)["1.1"] == "open"


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_model_that_lies_closes_nothing(lie: Lie, goal: Goal, say: Say, llm: LLMServer, world: World) -> None:
    closes_nothing(lie, LIES[lie], goal, say, llm)
