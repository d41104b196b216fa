"""What a person switches off, or sets to ask, while a run is at work holds for its next call that has an effect
(missions A2, D9 and D11)."""

from collections.abc import Callable

import pytest
from pydantic import JsonValue

from agents.undoing import take_back
from goals.models import Goal
from memory.models import AgentRun, Note
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tools.base import Outcome, ToolContext
from tools.builtin.notes import ListNotes, NothingAsked
from tools.models import AgentAction, Approval, Cause
from tools.part_models import Part

type Say = Callable[..., AgentRun]
type Meanwhile = Callable[..., None]
NOTE = ("create_note", {"title": "Shoes", "body": "42"})
LOOK: tuple[str, dict[str, JsonValue]] = ("list_notes", {})
SAID = "When my boss frowns, something in me goes quiet."
PART = {"name": "Quiet one", "role": "protector", "evidence": ["something in me goes quiet"]}


@pytest.fixture
def meanwhile(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Change the goal while its agent looks through its notes."""
    look = ListNotes.run

    def meanwhile(**fields: object) -> None:
        def run(self: ListNotes, arguments: NothingAsked, context: ToolContext) -> Outcome:
            Goal.objects.filter(pk=goal.pk).update(**fields)
            return look(self, arguments, context)

        monkeypatch.setattr(ListNotes, "run", run)

    return meanwhile


def status_of(tool: str) -> tuple[str, str]:
    action = AgentAction.objects.get(tool=tool)
    return action.status, action.output


@pytest.mark.parametrize("together", [True, False], ids=["in one reply", "in two"])
def test_a_tool_that_is_switched_off_meanwhile_does_nothing(
    together: bool, goal: Goal, say: Say, llm: LLMServer, meanwhile: Meanwhile
) -> None:
    meanwhile(modes={"create_note": "off"})
    replies = [Reply(calls=[LOOK, NOTE])] if together else [Reply(calls=[LOOK]), Reply(calls=[NOTE])]
    llm.script([*replies, Reply(text="Done.")])
    say("Go on")
    assert status_of("create_note") == ("denied", "The user has switched this tool off; nothing was done.")
    assert not Note.objects.exists()


def test_so_it_is_when_its_pack_is_switched_off(goal: Goal, say: Say, llm: LLMServer, meanwhile: Meanwhile) -> None:
    Goal.objects.update(packs=["reflective"])
    meanwhile(packs=[])
    llm.script([Reply(calls=[LOOK]), Reply(calls=[("create_emerging_part", PART)]), Reply(text="Done.")])
    say(SAID)
    assert status_of("create_emerging_part")[0] == "denied"
    assert not Part.objects.exists()


def test_so_it_is_for_a_helper_of_the_goal(goal: Goal, say: Say, llm: LLMServer, meanwhile: Meanwhile) -> None:
    meanwhile(modes={"create_note": "off"})
    llm.script([Reply(calls=[("create_task", {"title": "Look", "instructions": "Look it up"})]), Reply("Sent.")])
    llm.script([Reply(calls=[LOOK]), Reply(calls=[NOTE]), Reply("Found.")], "Look it up")
    llm.always(Reply("Good."))
    say("Go on")
    assert status_of("create_note")[0] == "denied"
    assert not Note.objects.exists()


def test_a_tool_that_is_set_to_ask_meanwhile_asks(goal: Goal, say: Say, llm: LLMServer, meanwhile: Meanwhile) -> None:
    meanwhile(modes={"create_note": "ask"})
    first, second, third = [("create_note", {"title": title, "body": ""}) for title in ("A", "B", "C")]
    llm.script([Reply(calls=[LOOK, first, second]), Reply(calls=[third])])
    run = say("Go on")
    statuses = list(AgentAction.objects.filter(tool="create_note").order_by("step", "position").values_list("status"))
    assert statuses == [("denied",), ("denied",), ("intent",)]
    assert Approval.objects.get(action__run=run).cause == Cause.CHOSEN
    assert not Note.objects.exists()


def test_what_nobody_has_changed_runs_as_it_did(goal: Goal, say: Say, llm: LLMServer, meanwhile: Meanwhile) -> None:
    meanwhile(modes={"delete_note": "off"}, packs=["reflective"])
    llm.script([Reply(calls=[LOOK, NOTE]), Reply(text="Done.")])
    say("Go on")
    assert Note.objects.count() == 1


def test_with_its_pack_off_an_agent_neither_takes_back_what_it_kept_nor_brings_it_again(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    goal.packs = ["reflective"]
    goal.save(update_fields=["packs"])
    llm.script([Reply(calls=[("create_emerging_part", PART)]), Reply(text="Done.")])
    say(SAID)
    created = AgentAction.objects.get()
    Goal.objects.update(packs=[])
    assert undone(say, llm, created).status == "error"
    Goal.objects.update(packs=["reflective"])
    back = undone(say, llm, created)
    assert (back.status, Part.objects.exists()) == ("done", False)
    Goal.objects.update(packs=[])
    again = undone(say, llm, back)
    assert (again.status, "is switched off" in again.error, Part.objects.exists()) == ("error", True, False)
    take_back(back, goal.user)
    assert Part.objects.exists(), "its person brings it back"


def test_nor_with_the_tool_off(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Done.")])
    say("Go on")
    back = undone(say, llm, AgentAction.objects.get())
    Goal.objects.update(modes={"create_note": "off"})
    assert undone(say, llm, back).status == "error"
    assert not Note.objects.exists()


def undone(say: Say, llm: LLMServer, action: AgentAction) -> AgentAction:
    llm.script([Reply(calls=[("undo_action", {"id": str(action.pk)})]), Reply(text="Done.")])
    return AgentAction.objects.get(run=say("Take it back"), tool="undo_action")
