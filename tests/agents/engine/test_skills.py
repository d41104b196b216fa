"""Skills: named in the prompt, read when they are needed, by whom their user lets (mission E1)."""

from collections.abc import Callable
from typing import Any

import pytest

from goals.models import Goal
from memory.models import AgentRun, Skill, SkillFile
from memory.skills import add_skill, keep_from, switch_skill, usable
from tests.factories import SkillFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.memory.test_skill_files import zipped

type Say = Callable[[str], AgentRun]


@pytest.fixture
def skill(goal: Goal) -> Skill:
    skill: Skill = SkillFactory(user=goal.user, name="plan-a-week", description="How to <plan> a week.")
    SkillFile.objects.create(skill=skill, path="docs/more.md", content=b"Rest on Mondays.")
    SkillFile.objects.create(skill=skill, path="x.png", content=b"\x89PNG")
    return skill


def reads(say: Say, llm: LLMServer, **arguments: str) -> str:
    llm.reset()
    llm.script([Reply(calls=[("read_skill", arguments)]), Reply(text="Done.")])
    say("Do it")
    return str(llm.requests[-1].messages[-1]["content"])


def prompt(say: Say, llm: LLMServer) -> str:
    """Prompt and tools of the next message."""
    llm.reset()
    llm.script([Reply(text="Yes.")])
    say("Go on")
    request = llm.requests[-1]
    assert ("read_skill" in str(request.body["tools"])) == ("<skill name=" in str(request.messages[0]))
    return str(request.messages[0]["content"])


def test_its_name_stands_in_the_prompt_and_the_rest_is_read_on_demand(say: Say, llm: LLMServer, skill: Skill) -> None:
    first = prompt(say, llm)
    assert '<skills>\n<skill name="plan-a-week">How to &lt;plan&gt; a week.</skill>\n</skills>' in first
    assert "Do it so." not in first
    assert prompt(say, llm) == first
    whole = reads(say, llm, name="plan-a-week")
    assert whole.startswith("Do it so.")
    assert "- docs/more.md\n- x.png" in whole
    assert reads(say, llm, name="plan-a-week", file="docs/more.md") == "Rest on Mondays."
    assert "no text" in reads(say, llm, name="plan-a-week", file="x.png")
    assert "no such file" in reads(say, llm, name="plan-a-week", file="../more.md")
    assert "no such skill" in reads(say, llm, name="other")


def test_whose_it_is_not_and_from_whom_it_is_kept(goal: Goal, say: Say, llm: LLMServer, skill: Skill) -> None:
    SkillFactory(name="theirs")
    assert "theirs" not in prompt(say, llm)
    keep_from(skill, [goal.thread_id])
    assert "plan-a-week" not in prompt(say, llm)
    SkillFactory(user=goal.user, name="other")
    assert "no such skill" in reads(say, llm, name="plan-a-week")
    keep_from(skill, [])
    assert "plan-a-week" in prompt(say, llm)
    switch_skill(skill, on=False)
    assert "plan-a-week" not in prompt(say, llm)
    assert "no such skill" in reads(say, llm, name="theirs")


def test_of_one_that_was_replaced_meanwhile_nothing_is_read(
    goal: Goal, say: Say, llm: LLMServer, skill: Skill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two statements of a call (threat T10)."""

    def usable_just_now(*asked: Any) -> Skill | None:
        found = usable(*asked)
        newer = {"SKILL.md": skill.text, "docs/more.md": "Obey."}
        add_skill(goal.user, zipped(newer), replace=True)
        return found

    monkeypatch.setattr("tools.builtin.skills.usable", usable_just_now)
    assert "no such file" in reads(say, llm, name="plan-a-week", file="docs/more.md")


def test_a_helper_knows_of_none(goal: Goal, say: Say, llm: LLMServer, skill: Skill) -> None:
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
    assert not any("plan-a-week" in str(request.body) or 'read_skill"' in str(request.body) for request in helpers)
