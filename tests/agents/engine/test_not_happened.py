"""What certainly has not happened is not put as a question to people, and what is asked is asked in words."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from agents.engine import jobs
from goals.models import Goal
from goals.toolbox import set_modes
from memory.models import AgentRun, Note, RunStatus
from tests.agents.engine.test_calls import begin, statuses
from tests.agents.engine.test_full_disk import no_room_in
from tests.agents.engine.test_mcp import connected, fake, results
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet
from tests.agents.engine.test_recovery import expire_leases
from tests.agents.engine.test_workspace import Act, act, folder, needs_sandbox, workspaces
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.mcp_server import Fails, FakeMcp
from tests.world import Killed, World
from tools.files import FileRefused
from tools.filing import add_file
from tools.models import AgentAction
from tools.sandbox.folder import Folder

__all__ = ["act", "fake", "folder", "workspaces"]

type Say = Callable[..., AgentRun]


def test_calls_that_are_open_when_a_run_is_given_up_are_told_as_far_as_they_are_known(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    """What our own database has not, has not happened."""
    llm.script([Reply(calls=[("book", {"text": "a table", "then": "crash"}), NOTE])])
    run_id = begin(goal, rung)
    with pytest.raises(Killed):
        jobs.run(str(run_id))
    expire_leases()
    assert statuses() == ["started", "started"]
    AgentRun.objects.update(recoveries=6)
    jobs.run(str(run_id))
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.FAILED
    assert statuses() == ["unknown", "cancelled"]
    assert AgentAction.objects.last().error == "Not executed: the run ended before."  # type: ignore[union-attr]
    assert not Note.objects.exists()
    assert_quiet(goal, llm)


def no_place_to_stage_in(folder: Folder) -> None:
    folder.staged.rmdir()
    folder.staged.write_text("in the way")


def test_a_file_that_cannot_even_be_staged_was_not_written(act: Act, folder: Folder) -> None:
    no_place_to_stage_in(folder)
    action = act("write_file", path="a.txt", content="v1")
    assert (action.status, action.error) == ("error", "Not a directory.")


@needs_sandbox
def test_a_command_before_which_nothing_can_be_kept_was_not_run(act: Act, folder: Folder, settings: Settings) -> None:
    settings.WAYMARK_COMMANDS_ALLOWED, settings.WAYMARK_COMMANDS_RESTRICTED = ["touch"], []
    (folder.files / "mine.txt").write_text("v1")
    no_place_to_stage_in(folder)
    action = act("run_cmd", command="touch new.txt")
    assert (action.status, action.error) == ("error", "Not a directory. Nothing was run.")
    assert not (folder.files / "new.txt").exists()


@needs_sandbox
def test_a_command_whose_sandbox_is_gone_was_not_run(
    act: Act, folder: Folder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WAYMARK_COMMANDS_ALLOWED, settings.WAYMARK_COMMANDS_RESTRICTED = ["touch"], []
    monkeypatch.setattr("tools.sandbox.run.walled", lambda *_, **__: ["/usr/bin/no-such-program"])
    action = act("run_cmd", command="touch new.txt")
    assert action.status == "error"
    assert action.error == "The sandbox cannot be started: No such file or directory. Nothing was run."


def test_a_file_for_whose_record_the_database_has_no_room_was_not_written(act: Act, folder: Folder) -> None:
    with no_room_in("tools_filewrite"):
        action = act("write_file", path="a.txt", content="v1")
    assert (action.status, action.error) == ("error", "The disk of the database is full.")
    assert not (folder.files / "a.txt").exists()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system writes no more into any file of this process, as when its disk is full."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def test_what_cannot_be_written_as_a_whole_leaves_nothing(goal: Goal, act: Act, folder: Folder) -> None:
    (folder.files / "a.txt").write_bytes(b"v" * 1_500_000)
    with files_of_at_most(1_000_000):
        deleted = act("delete_file", path="a.txt")  # what it holds is kept first
        with pytest.raises(FileRefused, match=r"^File too large\.$"):
            add_file(goal.thread, "b.txt", 1_500_000, iter([b"w" * 1_500_000]))
    assert (deleted.status, deleted.error) == ("error", "File too large.")
    assert list(folder.staged.iterdir()) == []
    assert [path.name for path in folder.files.iterdir()] == ["a.txt"]


def fail(given: dict[str, Any]) -> Any:
    raise Fails(-32603, {"why": "the shelf is full"})


def nonsense(given: dict[str, Any]) -> Any:
    return {"content": "Bearer canary"}


@pytest.mark.parametrize(
    ("acts", "said"), [(fail, ""), (nonsense, "its answer is not as the protocol wants it.")], ids=["fails", "nonsense"]
)
def test_of_a_server_that_has_answered_it_is_said_that_it_failed(
    goal: Goal, say: Say, llm: LLMServer, fake: FakeMcp, acts: Callable[[dict[str, Any]], Any], said: str
) -> None:
    connected(goal, fake)
    set_modes(goal, {"shop__post": "auto"})
    fake.acts["post"] = acts
    llm.script([Reply(calls=[("shop__post", {"x": "a"})]), Reply(text="I cannot tell.")])
    say("Send it.")
    assert AgentAction.objects.get().status == "unknown"
    (told,) = results(llm)
    assert "The outcome is unknown: the server failed. It may have taken effect." in told
    assert 'source="mcp: shop"' in told
    assert said in told
    assert "canary" not in told


def test_no_name_of_a_class_is_told_of_a_call_that_broke_off(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("post", {"text": "hello", "then": "drop"})]), Reply(text="I cannot tell.")])
    say("Go")
    assert statuses() == ["unknown"]
    assert "unknown: there was a fault in Waymark, of which the log has the details. It may" in results(llm)[0]
