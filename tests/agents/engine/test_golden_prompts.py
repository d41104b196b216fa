"""The whole prompt of each kind of agent, as its model gets it (mission E2): a change of a template, of a section or of
a tool shows here word for word.

When a change is meant, renew the files of tests/agents/prompts and look at what `git diff` says of them:

    WAYMARK_RENEW_PROMPTS=1 pytest tests/agents/engine/test_golden_prompts.py
"""

import os
import re
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from difflib import unified_diff
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents import services
from agents.engine import jobs
from agents.services import assistant_of
from goals import firing, schedules
from goals.feeds import set_hour
from goals.models import Goal, Schedule, ScheduleKind
from memory.models import AgentRun, Thread
from memory.news import line
from tests.factories import (
    AgentHistoryFactory,
    DocumentFactory,
    LearningFactory,
    MeasurementFactory,
    NoteFactory,
    SkillFactory,
    TargetFactory,
)
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tools.registry import all_tools
from tools.sandbox import selftest

type Say = Callable[[str], AgentRun]

GOLDEN = Path(__file__).parents[1] / "prompts"
RENEW = "WAYMARK_RENEW_PROMPTS"
# What differs from run to run.
VARIES = {
    r"\b\w+day, \d{1,2} \w+(?: \d{4}, \d\d:\d\d)?": "[moment]",
    r"\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d)?\b": "[day]",
    r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b": "[id]",
}
STEPS = [{"title": "Write a list", "tool": "write_file"}, {"title": "Look in the shop", "tool": "web_fetch"}]
PLAN = ("make_plan", {"tasks": [{"title": "Find shoes", "subtasks": STEPS}]})
FILE = ("write_file", {"path": "list.md", "content": "- blue"})
SHOES = ("create_task", {"title": "Shoes", "instructions": "Look for blue shoes in Graz."})


@pytest.fixture(autouse=True)
def every_tool(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that this machine could not offer, whatever programs it has."""
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    monkeypatch.setattr(selftest, "_programs", None)
    for tool in all_tools().values():
        monkeypatch.setattr(type(tool), "withheld", lambda _: "")


@pytest.fixture
def goal(goal: Goal) -> Goal:
    goal.title, goal.description = "Half marathon", "In Graz, in May. Under two hours & without pain."
    goal.save()
    user = assistant_of(goal.user)
    user.time_zone = "Europe/Vienna"
    user.save()
    Schedule.objects.all().delete()
    return goal


def works(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def remembers(thread: Thread, llm: LLMServer, rung: list[UUID]) -> None:
    """A plan and a file, an earlier session, and something in each section of the context: all to be told with the
    next message."""
    llm.script([Reply(calls=[PLAN]), Reply(calls=[FILE]), Reply("It is planned.")])
    services.send_message(thread, "Plan it")
    works(rung)
    thread = Thread.objects.get(pk=thread.pk)
    AgentHistoryFactory(thread=thread, summary="They chose the race in Graz. <The shoes> are open.")
    NoteFactory(thread=thread, title="Shoes", body="Blue & light.")
    DocumentFactory(thread=thread, text="The race is in May.")
    DocumentFactory(thread=None, user=thread.user, name="SOUL", text="Be kind & brief.")
    SkillFactory(user=thread.user, name="race-day", description="What to do on the day of a race.")
    LearningFactory(thread=thread, text="Runs in the morning.")
    LearningFactory(thread=thread, text="The race begins at ten.", sources=["https://race.example"])
    schedules.add(thread, "every weekday 8:00", "Ask how the run was.")
    Thread.objects.filter(pk=thread.pk).update(news=line("The task Shoes has ended."))


def asked(thread: Thread, llm: LLMServer, rung: list[UUID]) -> Request:
    llm.script([Reply("Well.")])
    services.send_message(thread, "How does it stand?")
    works(rung)
    return llm.requests[-1]


def of_a_goal(goal: Goal, llm: LLMServer, rung: list[UUID]) -> Request:
    remembers(goal.thread, llm, rung)
    TargetFactory(thread=goal.thread, name="Longest run", value=21, unit="km", deadline=date(2030, 5, 1))
    MeasurementFactory(thread=goal.thread, value=12.5)
    return asked(goal.thread, llm, rung)


def of_a_goal_with_a_pack(goal: Goal, llm: LLMServer, rung: list[UUID]) -> Request:
    goal.packs = ["reflective"]
    goal.save()
    return of_a_goal(goal, llm, rung)


def of_the_assistant(goal: Goal, llm: LLMServer, rung: list[UUID]) -> Request:
    thread = assistant_of(goal.user).thread
    remembers(thread, llm, rung)
    TargetFactory(thread=goal.thread, name="Longest run", value=21, unit="km", deadline=date(2030, 5, 1))
    return asked(thread, llm, rung)


def of_the_feed(goal: Goal, llm: LLMServer, rung: list[UUID]) -> Request:
    asked(goal.thread, llm, rung)
    remembers(assistant_of(goal.user).thread, llm, rung)
    set_hour(goal.user, time(7))
    Schedule.objects.filter(kind=ScheduleKind.FEED).update(next_at=timezone.now() - timedelta(seconds=1))
    llm.script([Reply("Nothing.")])
    assert firing.fire_due() == 1
    works(rung)
    return llm.requests[-1]


def of_a_task(goal: Goal, llm: LLMServer, rung: list[UUID]) -> Request:
    llm.script([Reply("I found none.")], lambda request: "blue shoes" in request.first_user_text)
    llm.script([Reply(calls=[SHOES]), Reply("Sent off."), Reply("None.")])
    services.send_message(goal.thread, "Find shoes")
    works(rung)
    return next(request for request in llm.requests if "blue shoes" in request.first_user_text)


KINDS = {
    "goal": of_a_goal,
    "goal_with_pack": of_a_goal_with_a_pack,
    "assistant": of_the_assistant,
    "feed": of_the_feed,
    "task": of_a_task,
}


def written(request: Request) -> str:
    """What was sent, for people: the system prompt, the tools in short, and the last message."""
    system, *_, last = request.messages
    tools = [_tool(tool["function"]) for tool in request.body["tools"]]
    said = "\n".join(_texts(last["content"]))
    text = f"# System prompt\n\n{system['content']}\n# Tools\n\n{'\n'.join(tools)}\n\n# Last message\n\n{said}\n"
    for pattern, word in VARIES.items():
        text = re.sub(pattern, word, text)
    return text


def _texts(content: Any) -> Iterator[str]:
    yield from [content] if isinstance(content, str) else (part["text"] for part in content)


def _tool(tool: dict[str, Any]) -> str:
    """Name and arguments on a line, optional ones with a question mark; then what the model is told of it."""
    schema = tool["parameters"]
    required = schema.get("required", [])
    arguments = (
        f"{name}{'' if name in required else '?'}: {_type(each)}" for name, each in schema.get("properties", {}).items()
    )
    told = "\n".join(f"    {line}" for line in tool["description"].splitlines())
    return f"{tool['name']}({', '.join(arguments)})\n{told}"


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(repr, schema["enum"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "items" in schema:
        return f"[{_type(schema['items'])}]"
    return str(schema.get("type", "any"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_prompt_of_each_kind_is_the_one_on_file(kind: str, goal: Goal, llm: LLMServer, rung: list[UUID]) -> None:
    now, path = written(KINDS[kind](goal, llm, rung)), GOLDEN / f"{kind}.txt"
    if os.environ.get(RENEW):
        path.write_text(now, encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    difference = "\n".join(unified_diff(before.splitlines(), now.splitlines(), path.name, "now", lineterm=""))
    if difference:
        pytest.fail(f"The prompt has changed. If that is meant, renew it with {RENEW}=1.\n{difference}", pytrace=False)


def test_every_section_is_told_in_its_order() -> None:
    sections = re.findall(r"^<(\w+)", (GOLDEN / "goal.txt").read_text(encoding="utf-8").partition("# Last")[2], re.M)
    assert sections == ["time", "learnings", "notes", "memory", "schedule", "target", "plan", "state", "news"]
