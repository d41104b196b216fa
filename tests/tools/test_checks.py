"""A tool or a kind of agent that is wrong is refused at start-up."""

from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, Wording
from tools.registry import all_tools


class Nothing(Arguments):
    pass


class Harmless(Tool[Nothing]):
    name = "harmless"
    description = "Does nothing."
    wording = Wording("search", "Do", "Doing", "Did", "Could not do")
    Arguments = Nothing

    def run(self, arguments: Nothing, context: ToolContext) -> Outcome:
        return Outcome("done")


class BadName(Harmless):
    name = "bad name"


class Silent(Harmless):
    name = "silent"
    description = " "


class SaysNothingOfUndo(Harmless):
    name = "no_undo"
    effect = Effect.NON_IDEMPOTENT


class Irreversible(Harmless):
    name = "irreversible"
    effect = Effect.NON_IDEMPOTENT
    reversal = Reversal.IRREVERSIBLE


def problems(tag: str) -> list[str]:
    return [str(message.id) for message in run_checks(tags=[tag])]


def test_models_are_told_no_titles_of_fields_which_only_repeat_their_names() -> None:
    for tool in all_tools().values():
        schema: dict[str, Any] = tool.spec().schema
        models = [schema, *schema.get("$defs", {}).values()]
        fields = [field for model in models for field in model.get("properties", {}).values()]
        assert not [field for field in fields if "title" in field], tool.name


def test_the_tools_and_kinds_that_are_shipped_are_right() -> None:
    assert problems("tools") == problems("agents") == []


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["tools.nowhere.Tool"], "tools.E001"),
        (["Harmless", "Harmless"], "tools.E002"),
        (["BadName"], "tools.E003"),
        (["Silent"], "tools.E004"),
        (["SaysNothingOfUndo"], "tools.E005"),
        (["Irreversible"], "tools.E006"),
    ],
)
def test_a_wrong_tool_is_refused(settings: Settings, paths: list[str], problem: str) -> None:
    settings.AGENT_TOOLS = [path if "." in path else f"{__name__}.{path}" for path in paths]
    assert problems("tools") == [problem]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("agents.nowhere.Kind", "agents.E001"),
        ("django.contrib.auth.models.User", "agents.E002"),
        ("agents.agentable.Agentable", "agents.E003"),
    ],
)
def test_a_wrong_kind_of_agent_is_refused(settings: Settings, path: str, problem: str) -> None:
    settings.AGENT_KINDS = [path]
    assert problems("agents") == [problem]


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["tools.nowhere.Restorer"], "tools.E008"),
        (["tools.builtin.notes.NoteRestorer"] * 2, "tools.E009"),
        (["tools.base.Tool"], "tools.E010"),
    ],
)
def test_a_wrong_restorer_is_refused(settings: Settings, paths: list[str], problem: str) -> None:
    settings.AGENT_RESTORERS = paths
    assert problems("tools") == [problem]
