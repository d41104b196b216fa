"""Plans of agents, and that a step is closed only by what was really done (mission A7, A8)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from pytest_django import Settings

from agents import plans, services
from agents.engine import jobs
from agents.models import AgentTask, PlanItem, TaskStatus
from agents.plans import PlannedStep, PlannedTask, make_plan
from agents.services import assistant_of
from agents.undoing import take_back
from goals.models import Goal
from memory.models import AgentRun
from tests.agents.engine.test_recovery import expire_leases
from tests.factories import AgentRunFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.world import Killed
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]
type Call = tuple[str, dict[str, Any]]


def step(title: str, tool: str = "write_file") -> dict[str, str]:
    return {"title": title, "tool": tool}


def task(title: str, *steps: str) -> dict[str, Any]:
    return {"title": title, "subtasks": [step(each) for each in steps]}


SHOES = {"title": "Find shoes", "subtasks": [step("Write a list"), step("Keep it", "create_note")]}
PLAN: Call = ("make_plan", {"tasks": [SHOES, {"title": "Buy", "subtasks": [step("Ask", "create_task")]}]})
LIST: Call = ("write_file", {"path": "list.md", "content": "- red"})
SEND: Call = ("create_task", {"title": "Look", "instructions": "Look it up", "report_as_note": True})
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


def helped(say: Say, llm: LLMServer, *calls: Call) -> None:
    """Let the agent make these calls, one of which sends a helper off, which writes a file and reports."""
    llm.reset()
    llm.script([*(Reply(calls=[call]) for call in calls), Reply("It is on its way.")])
    llm.script([Reply(calls=[("write_file", {"path": "found.md", "content": "red"})]), Reply("Found.")], "Look it up")
    llm.always(Reply("Good."))
    say("Go on")
    assert AgentTask.objects.get().status == TaskStatus.COMPLETED


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
    llm.script([Reply(text="Good."), Reply(text="Bye.")])
    say("Thank you")
    assert "<plan>\nNone any more.\n</plan>" in llm.requests[-1].last_user_text
    say("Bye")
    assert "<plan>" not in llm.requests[-1].last_user_text


def test_an_open_plan_is_told_when_it_has_changed_and_not_with_every_message(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    does(say, llm, PLAN)
    for words in ("One", "Two", "Three"):
        does(say, llm, *([LIST, closes(("file", "list.md"))] if words == "Two" else []))
        llm.script([Reply(text="Yes.")])
        say(words)
    said = [str(message["content"]) for message in llm.requests[-1].messages if message["role"] == "user"]
    assert sum("<plan>" in text for text in said) == 2, "once as it was made, once as a step was closed"


def test_steps_that_no_tool_does_are_sent_back_once(goal: Goal, say: Say, llm: LLMServer) -> None:
    """Such as are words alone, or name a tool that there is not, that is off, or that can prove nothing."""
    Goal.objects.update(modes={"create_note": "off"})
    tools = {"Think": "", "Dr\u202eeam": "dream", "Keep": "create_note", "Look": "list_dir", "Say": "send_message"}
    steps = [
        "Understand",
        *(step(title, tool) for title, tool in tools.items()),
        step("Write"),
        step("Ask", "create_task"),
    ]
    vague: Call = ("make_plan", {"tasks": [{"title": "Shoes", "subtasks": steps}]})
    first, second, third = does(say, llm, vague, vague, ("make_plan", {"tasks": [task("Rest", "Sleep")]}))
    assert first.startswith(
        "Error: Nothing was planned yet, because no tool does this: Understand; Think; Dream; Keep; Look; Say. Make it"
    )
    assert second.endswith("Next: 1.1 Understand"), "not every model knows better"
    assert third.endswith("Next: 1.1 Sleep")
    assert does(say, llm, vague)[0].startswith("Error: Nothing was planned yet"), "each run is told once"
    assert states(goal) == {"1": "open", "1.1": "open"}, "and the plan stands"


def test_a_proven_step_of_the_same_words_stays_done_in_a_new_plan(goal: Goal, say: Say, llm: LLMServer) -> None:
    does(say, llm, PLAN, LIST, closes(("file", "list.md"), reason="Red ones."), NOTE)
    again: Call = ("make_plan", {"tasks": [task("Shoes", "Pay", "write a  list", "Write a list")]})
    (told, *_) = does(say, llm, again)
    assert told == (
        "1 Shoes [open]\n  1.1 Pay [open]\n  1.2 write a list [done]\n  1.3 Write a list [open]\nNext: 1.1 Pay"
    )
    carried = PlanItem.objects.current().get(number="1.2")
    assert (carried.reason, carried.evidence[0]["words"], carried.closed_at is None) == ("Red ones.", "list.md", False)
    does(say, llm, ("make_plan", {"tasks": [task("Shoes", "Write a list")]}))
    assert states(goal) == {"1": "done", "1.1": "done"}
    take_back(AgentAction.objects.get(tool="write_file"), goal.user)
    does(say, llm, PLAN)
    assert states(goal)["1.1"] == "open", "its proof was gone"


@pytest.mark.parametrize("moment", ["before it is made", "before it is on record"])
def test_a_new_plan_is_neither_lost_nor_doubled_by_a_death(
    moment: str, goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one holds until the new one is there with all that it takes over, in one commit."""
    does(say, llm, PLAN, LIST, closes(("file", "list.md")))
    before = states(goal)
    again: Call = ("make_plan", {"tasks": [task("Shoes", "Pay", "Write a list")]})
    llm.reset()
    llm.script([Reply(calls=[again]), Reply("It is planned anew.")])
    make, once = plans.make_plan, iter([Killed()])

    def dies(*arguments: Any) -> list[PlanItem]:
        made = make(*arguments) if moment == "before it is on record" else []
        for killed in once:
            raise killed
        return made or make(*arguments)

    monkeypatch.setattr(plans, "make_plan", dies)
    accepted = services.send_message(goal.thread, "Think again")
    assert accepted.run_id
    with pytest.raises(Killed):
        jobs.run(str(rung.pop()))
    assert states(goal) == before
    expire_leases()
    jobs.run(str(accepted.run_id))
    assert AgentRun.objects.get(pk=accepted.run_id).status == "succeeded"
    assert states(goal) == {"1": "open", "1.1": "open", "1.2": "done"}
    assert PlanItem.objects.count() == 5 + 3
    assert len(llm.requests) == 2, "nothing was asked again"


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
    does(say, llm, ("make_plan", {"tasks": [task("Rest", "Sleep")]}))
    assert states(goal) == {"1": "open", "1.1": "open"}
    assert PlanItem.objects.filter(status="done").count() == 0, "what was closed went with its plan"
    assert PlanItem.objects.filter(evidence__0__words="list.md").count() == 1, "but stays on record"


def test_a_step_that_a_helper_has_done_is_proven_by_what_it_did(goal: Goal, say: Say, llm: LLMServer) -> None:
    """The agent sees the ids of what helpers did, and names their report as the note that it is."""
    helped(say, llm, PLAN, SEND)
    helper = AgentAction.objects.get(tool="write_file")
    assert helper.thread_id != goal.thread_id
    (listed, *_) = does(say, llm, ("list_recent_actions", {}), closes(("action", str(helper.pk))))
    assert f"- Wrote a file found.md (id {helper.pk}, " in listed
    assert "by the helper 'Look')" in listed
    does(say, llm, closes(("note", "Look"), subtask="1.2"))
    assert states(goal)["1"] == "done"


def test_titles_and_reasons_hold_nothing_that_cannot_be_seen(goal: Goal, say: Say, llm: LLMServer) -> None:
    """They stand on pages and in prompts (threat T17)."""
    blank: Call = ("make_plan", {"tasks": [task("Shoes", "\u200b\u200d", "Ask")]})
    turned: Call = ("make_plan", {"tasks": [task("A\u202egnp.exe\u0007", "\u200b👩\u200d💻 Ask\ufeff")]})
    (refused, _, _) = does(say, llm, blank, turned, closes(success=False, reason="No\u202e \u200bone."))
    assert refused == "Error: A task or a subtask has no words. Nothing was planned."
    assert list(PlanItem.objects.values_list("title", "reason")) == [
        ("Agnp.exe", ""),
        ("👩\u200d💻 Ask", "No one."),
    ]
    (refused,) = does(say, llm, closes(success=False, reason="\u200b"))
    assert refused.startswith("Error: ")


def test_a_user_sees_the_plan_beside_the_conversation(goal: Goal, say: Say, llm: LLMServer, client: Client) -> None:
    """As a tree, with the numbers that the agent speaks of, and what is long folded."""
    long = "It has <three> lines. " + "And more. " * 30
    does(say, llm, PLAN, LIST, closes(("file", "list.md"), reason="It has <three> lines."))
    does(say, llm, closes(subtask="1.2", success=False, reason=long))
    client.force_login(goal.user)
    page = client.get(f"/goals/{goal.pk}/").text
    assert re.search(r'<ol class="trail plan">\s*<li[^>]*>.*?<ol class="trail plan">\s*<li[^>]*>', page, re.DOTALL)
    assert '<span class="faint num">1.1</span> Write a list' in page
    assert "2 of 3" in page
    assert 'data-state="running"' not in page, "nobody is at it"
    assert page.count("It has &lt;three&gt; lines.</small></p>") == 1
    assert page.count('<details class="why"') == 1, "what is long is folded"


def test_a_user_sees_the_plan_of_the_assistant(goal: Goal, client: Client) -> None:
    thread = assistant_of(goal.user).thread
    make_plan(thread, [PlannedTask(title="Find shoes", subtasks=[PlannedStep(title="Write a list")])])
    client.force_login(goal.user)
    page = client.get("/assistant/").text
    assert "About your assistant" in page
    assert '<span class="faint num">1.1</span> Write a list' in page


@pytest.mark.parametrize(("status", "mark"), [("running", "running"), ("waiting_approval", "waiting")])
def test_a_user_sees_at_which_step_the_agent_is(status: str, mark: str, goal: Goal, client: Client) -> None:
    steps = [PlannedStep(title="Write a list"), PlannedStep(title="Ask Kim")]
    _, first, *_ = make_plan(goal.thread, [PlannedTask(title="Find shoes", subtasks=steps)])
    PlanItem.objects.filter(pk=first.pk).update(status="done")
    AgentRunFactory(thread=goal.thread, status=status)
    client.force_login(goal.user)
    plan = client.get(f"/goals/{goal.pk}/").text.partition('id="panel-plan"')[2].partition("</details>")[0]
    assert re.findall(r'class="step" data-state="(\w+)"', plan) == [mark, "done", mark], "the task, and its second step"
