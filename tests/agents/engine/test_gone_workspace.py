"""Files of an agent that is deleted while something is still at work on them."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from agents.engine.health import monitor
from agents.models import HealthReport
from goals.models import Goal
from goals.services import delete_goal
from memory.ids import new_id
from memory.models import Thread
from tests.agents.engine.test_workspace import context_of, needs_sandbox
from tools import files, filing
from tools.base import ToolError
from tools.builtin import commands
from tools.builtin.commands import RunCmd
from tools.builtin.workspace import ListDir, WriteFile
from tools.file_models import FileWrite, Workspace, Writer
from tools.file_settling import settle
from tools.sandbox import selftest
from tools.sandbox.folder import Folder
from tools.sandbox.run import run

pytestmark = pytest.mark.django_db(transaction=True)

HAND = files.Hand(Writer.AGENT)


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Settings) -> Path:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    return tmp_path / "workspaces"


@pytest.fixture
def home(goal: Goal) -> Path:
    return Folder(goal.thread_id).home


def lists(goal: Goal) -> None:
    assert ListDir().run(ListDir.Arguments(path=""), context_of(goal)).observation == "It is empty."


def writes(goal: Goal) -> None:
    with pytest.raises(ToolError, match="is gone"):
        WriteFile().run(WriteFile.Arguments(path="a", content="x"), context_of(goal))


def gives(goal: Goal) -> None:
    with pytest.raises(files.FileRefused, match="is gone"):
        filing.add_file(goal.thread, "a", 1, iter([b"x"]))


def deletes(goal: Goal) -> None:
    with pytest.raises(files.FileRefused, match="is gone"):
        filing.delete_file(goal.thread, "a")


def runs(goal: Goal) -> None:
    with pytest.raises(ToolError, match="is gone"):
        RunCmd().run(RunCmd.Arguments(command="ls"), context_of(goal))


def looks(goal: Goal) -> None:
    with pytest.raises(files.FileRefused, match="is gone"):
        settle(goal.thread_id, HAND, keep=True)


@pytest.mark.parametrize("deed", [lists, writes, gives, deletes, runs, looks])
def test_nothing_is_made_anew_for_an_agent_that_is_gone(
    deed: Callable[[Goal], None], goal: Goal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "_reason", "")
    thread = goal.thread
    delete_goal(goal)
    goal.thread = thread
    deed(goal)
    assert not home.exists()


def test_nothing_is_left_of_a_write_whose_agent_goes_before_it_is_staged(
    goal: Goal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Folder.stage

    def late(self: Folder, *arguments: Any) -> Any:
        delete_goal(goal)
        return stage(self, *arguments)

    monkeypatch.setattr(Folder, "stage", late)
    with pytest.raises(files.FileRefused):
        files.write(goal.thread_id, "a", iter([b"x"]), HAND)
    assert not home.exists()


def test_nothing_is_left_of_a_write_whose_agent_goes_while_it_is_staged(goal: Goal, home: Path) -> None:
    def content() -> Any:
        yield b"x"
        delete_goal(goal)
        yield b"y"

    with pytest.raises(files.FileRefused):
        files.write(goal.thread_id, "a", content(), HAND)
    assert not home.exists()


@needs_sandbox
@pytest.mark.faults
def test_a_command_whose_agent_goes_before_it_starts_makes_no_workspace(
    goal: Goal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*arguments: Any) -> Any:
        delete_goal(goal)
        return run(*arguments)

    monkeypatch.setattr(commands, "run", late)
    with pytest.raises(files.FileRefused, match="is gone"):
        RunCmd().run(RunCmd.Arguments(command="ls"), context_of(goal))
    assert not home.exists()


# -- What is left all the same ----------------------------------------------------------------------------------------


def aged(path: Path, hours: float) -> Path:
    os.utime(path, (time.time() - hours * 3_600,) * 2)
    return path


def report(name: str, *, fix: bool = False) -> HealthReport:
    (found,) = [report for report in monitor.examine(fix=fix) if report.name == name]
    assert not found.error
    return found


@pytest.fixture
def lost() -> Folder:
    """Of nobody, since two hours."""
    folder = Folder(new_id())
    folder.make()
    (folder.files / "a.txt").write_text("x")
    aged(folder.home, 2)
    return folder


def test_folders_of_nobody_are_swept_and_all_others_stay(goal: Goal, home: Path, lost: Folder) -> None:
    files.write(goal.thread_id, "mine", iter([b"x"]), HAND)
    aged(home, 200)
    young = Folder(new_id())  # such as the sandbox's trial that is just under way
    young.make()
    beside = lost.home.parent / "lost+found"
    beside.mkdir()
    aged(beside, 200)
    assert (report("lost_workspaces").found, lost.home.exists()) == (1, True)
    swept = report("lost_workspaces", fix=True)
    assert (swept.found, swept.fixed) == (1, 1)
    assert sorted(lost.home.parent.iterdir()) == sorted([home, young.home, beside])
    assert (home / "files" / "mine").read_bytes() == b"x"
    assert report("lost_workspaces").found == 0


def test_a_sweep_has_bounds(lost: Folder, settings: Settings) -> None:
    settings.WAYMARK_HEALTH_BATCH = 2
    for _ in range(3):
        folder = Folder(new_id())
        folder.make()
        aged(folder.home, 2)
    assert [report("lost_workspaces", fix=True).fixed for _ in range(3)] == [2, 2, 0]


def test_what_cannot_be_swept_is_told_and_tried_again(lost: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "forget", lambda self: False)
        kept = report("lost_workspaces", fix=True)
    assert (kept.found, kept.fixed, kept.examples) == (1, 0, [f"workspace {lost.thread_id}"])
    assert report("lost_workspaces", fix=True).fixed == 1
    assert not lost.home.exists()


def test_staged_files_that_will_not_be_written_are_swept(goal: Goal, lost: Folder) -> None:
    Workspace.objects.create(thread=goal.thread)
    folder = Folder(goal.thread_id)
    folder.make()
    left, half, awaited, fresh = (folder.staged / str(new_id()) for _ in range(4))
    half.mkdir()
    for path in (left, awaited, fresh):
        path.write_text("x")
    for path in (left, half, awaited):
        aged(path, 25)
    FileWrite.objects.create(action=awaited.name, workspace_id=goal.thread_id, record={"changes": []})
    swept = report("staged_files", fix=True)
    assert (swept.found, swept.fixed) == (2, 2)
    assert sorted(folder.staged.iterdir()) == sorted([awaited, fresh])
    assert report("staged_files").found == 0


def test_without_any_workspace_nothing_is_found(workspaces: Path) -> None:
    assert not workspaces.exists()
    assert (report("lost_workspaces").found, report("staged_files").found) == (0, 0)
    assert not Thread.objects.exists()
