"""What an agent is told of its workspace: facts only (mission A9)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from goals.models import Goal
from memory.models import AgentRun
from tests.factories import AgentActionFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tools.sandbox.folder import Folder

type Say = Callable[[str], AgentRun]


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"


def test_files_commands_and_errors_are_told_as_they_are(goal: Goal, say: Say, llm: LLMServer) -> None:
    calls = [
        ("write_file", {"path": "rock.py", "content": "print('rock')"}),
        ("write_file", {"path": "old.py", "content": "pass"}),
        ("write_file", {"path": "lost.py", "content": "pass"}),
        ("delete_file", {"path": "old.py"}),
        ("read_file", {"path": "nowhere.py"}),
    ]
    llm.script([*(Reply(calls=[call]) for call in calls), Reply(text="Done.")])
    run = say("Write a game")
    failed = {"arguments": {"command": "pytest -q"}, "output": "Exit code 1 after 0.4 s.\nIt wrote nothing."}
    AgentActionFactory(run=run, step=9, tool="run_cmd", status="done", **failed)
    (Folder(goal.thread_id).files / "lost.py").unlink()
    llm.script([Reply(text="Yes.")] * 2)
    say("How does it stand?")
    say("And now?")
    first, second = (str(request.messages[-1]) for request in llm.requests[-2:])
    assert "Written by you, and there: rock.py" in first
    assert "Removed by you: old.py" in first
    assert "Ran pytest -q: exit code 1" in first
    assert "Failed: read_file: " in first
    assert "<state>" not in second  # nothing has changed since it was told


def test_an_agent_without_files_is_told_nothing_of_it(say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Hello.")])
    say("Hello")
    assert "<state>" not in str(llm.requests[-1].messages[-1])


def test_what_is_gone_is_said_to_be_missing(goal: Goal, say: Say, llm: LLMServer) -> None:
    write = ("write_file", {"path": "lost.py", "content": "pass"})
    keep = ("write_file", {"path": "kept.py", "content": "pass"})
    llm.script([Reply(calls=[write, keep]), Reply(text="Done.")])
    say("Write")
    (Folder(goal.thread_id).files / "lost.py").unlink()
    llm.script([Reply(text="It is gone.")])
    say("Look")
    assert "Written by you, but missing: lost.py" in str(llm.requests[-1].messages[-1])
