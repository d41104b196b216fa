"""What agents write stays within their quota, and away from the last room of the disk, which the database needs."""

import threading
from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from goals.models import Goal
from memory.models import AgentRun
from tests.agents.engine.test_orchestrator import wait_until
from tests.agents.engine.test_workspace import Act, act, folder, needs_sandbox, workspaces
from tests.factories import bearer
from tools.models import AgentAction
from tools.sandbox.folder import Folder

__all__ = ["act", "folder", "workspaces"]

type Say = Callable[..., AgentRun]

ALL_THERE_IS = 10**18


@pytest.fixture(autouse=True)
def allowed(settings: Settings) -> None:
    settings.WAYMARK_COMMANDS_ALLOWED, settings.WAYMARK_COMMANDS_RESTRICTED = ["bash"], []


def upload(goal: Goal) -> tuple[int, str]:
    file = SimpleUploadedFile("a.txt", b"words")
    answer = Client().post(f"/api/v1/goals/{goal.pk}/files", {"file": file}, headers=bearer(goal.user))
    return answer.status_code, answer.content.decode()


def test_nothing_is_written_and_no_command_begins_on_a_disk_that_is_nearly_full(
    goal: Goal, act: Act, folder: Folder, settings: Settings
) -> None:
    (folder.files / "mine.txt").write_text("v1")
    settings.WAYMARK_DISK_RESERVE = ALL_THERE_IS
    actions = [act("write_file", path="a.txt", content="v1"), act("run_cmd", command="bash -c 'echo x > b.txt'")]
    assert [action.status for action in actions] == ["error", "error"]
    assert all("The disk of this server is nearly full" in action.error for action in actions)
    status, said = upload(goal)
    assert (status, "nearly full" in said) == (400, True)
    assert [path.name for path in folder.files.iterdir()] == ["mine.txt"]
    assert act("delete_file", path="mine.txt").status == "done", "what makes room goes on"


@needs_sandbox
@pytest.mark.faults
def test_a_command_that_comes_near_the_end_of_the_disk_is_ended(act: Act, folder: Folder, settings: Settings) -> None:
    def fill_the_disk() -> None:
        wait_until((folder.files / "a.txt").exists, 60)
        settings.WAYMARK_DISK_RESERVE = ALL_THERE_IS

    filling = threading.Thread(target=fill_the_disk)
    filling.start()
    action = act("run_cmd", command="bash -c 'echo x > a.txt; sleep 50'")
    filling.join()
    assert action.status == "done", action.error
    assert action.output.startswith("It was killed after ")
    assert "the disk of this server is nearly full. What it had changed by then is changed." in action.output
    assert "New: a.txt" in action.output


@needs_sandbox
@pytest.mark.faults
def test_what_a_quick_command_leaves_over_the_quota_is_told_and_ends_commands_until_it_is_gone(
    act: Act, folder: Folder, settings: Settings
) -> None:
    settings.WAYMARK_WORKSPACE_BYTES = 20_000_000
    first = act("run_cmd", command="bash -c 'head -c 30000000 /dev/zero > large'")
    assert first.status == "done", first.error
    assert "The workspace is full: it holds " in first.output
    assert "and may hold 19.1 MB." in first.output
    second: AgentAction = act("run_cmd", command="bash -c 'echo x > b.txt'")
    assert second.status == "error"
    assert second.error.endswith("and may hold 19.1 MB. Nothing was run. Delete files first.")
    assert act("delete_file", path="large").status == "done"
    assert act("run_cmd", command="bash -c 'echo x > b.txt'").output.startswith("Exit code 0 after ")
