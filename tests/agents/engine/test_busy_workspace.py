"""A workspace in which somebody else is at work just now, and one with many files."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from pytest_django import Settings

from goals.models import Goal
from goals.services import delete_goal
from memory.news import tell
from tests.agents.engine.test_workspace import context_of
from tools import deeds, files, filing
from tools.base import ToolError
from tools.builtin.commands import RunCmd
from tools.builtin.workspace import DeleteFile, WriteFile
from tools.file_models import Workspace, Writer
from tools.file_settling import settle
from tools.models import AgentAction
from tools.sandbox import selftest
from tools.sandbox.folder import Folder
from tools.sandbox.staging import Kept

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"


@pytest.fixture
def held(goal: Goal) -> Iterator[None]:
    """Somebody holds the workspace, and nobody waits for long."""
    files.write(goal.thread_id, "a.txt", iter([b"as it was"]), files.Hand(Writer.USER))
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Workspace.objects.select_for_update().get(pk=goal.thread_id)
            is_held.set()
            is_over.wait(30)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait(10)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    yield
    is_over.set()
    thread.join()
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")  # the pool gives the connection to the next test
    connection.close()


def test_people_are_told_that_it_is_busy(goal: Goal, held: None) -> None:
    with pytest.raises(files.FileRefused, match=r"^The workspace is busy; try again in a moment\.$"):
        filing.add_file(goal.thread, "a.txt", 3, iter([b"new"]))
    with pytest.raises(files.FileRefused, match="busy"):
        filing.delete_file(goal.thread, "a.txt")
    assert (Folder(goal.thread_id).files / "a.txt").read_text() == "as it was"
    assert list(Folder(goal.thread_id).staged.iterdir()) == []
    assert not AgentAction.objects.exists()


def test_agents_are_told_that_it_is_busy_and_that_nothing_was_done(
    goal: Goal, held: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "_reason", "")
    context = context_of(goal)
    with pytest.raises(ToolError, match="busy"):
        WriteFile().run(WriteFile.Arguments(path="a.txt", content="x"), context)
    with pytest.raises(ToolError, match="busy"):
        DeleteFile().run(DeleteFile.Arguments(path="a.txt"), context)
    with pytest.raises(ToolError, match=r"busy.* Nothing was run\."):
        RunCmd().run(RunCmd.Arguments(command="ls"), context)


def test_what_became_of_a_call_is_not_told_while_somebody_is_at_it(goal: Goal, held: None) -> None:
    context = context_of(goal)
    with pytest.raises(ToolError, match="busy"):
        WriteFile().probe(WriteFile.Arguments(path="a.txt", content="x"), context)
    with pytest.raises(ToolError, match="busy"):
        DeleteFile().probe(DeleteFile.Arguments(path="a.txt"), context)


def test_many_files_are_kept_before_the_lock_and_looked_through_once(
    goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying thousands of files takes longer than others wait for the lock."""
    folder = Folder(goal.thread_id)
    folder.make()
    for number in range(30):
        (folder.files / f"{number}.txt").write_text(f"content {number}")
    kept: list[bool] = []
    let_go: list[bool] = []
    keep, lets_go = Kept.keep, Kept.let_go

    def noted(calls: list[bool], call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **more: Any) -> Any:
            calls.append(connection.in_atomic_block)
            return call(*args, **more)

        return noting

    monkeypatch.setattr(Kept, "keep", noted(kept, keep))
    monkeypatch.setattr(Kept, "let_go", noted(let_go, lets_go))
    changes, _ = settle(goal.thread_id, files.Hand(Writer.COMMAND), keep=True)
    assert len(changes) == len(kept) == 30
    assert not any(kept)
    assert len(let_go) == 1
    assert {each.name for each in folder.kept.folder.iterdir()} == {
        str(each.after["sha256"]) for each in changes if each.after
    }


def test_no_more_is_kept_than_there_is_room_for(goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACE_KEPT = 25
    for number in range(6):
        files.write(goal.thread_id, "a.txt", iter([f"content {number}\n".encode()]), files.Hand(Writer.USER))
    folder = Folder(goal.thread_id)
    assert sorted(each.read_text() for each in folder.kept.folder.iterdir()) == ["content 3\n", "content 4\n"]


def test_a_goal_is_deleted_while_a_file_is_put_in(goal: Goal) -> None:
    """Whoever changes a file locks the workspace before the thread, and so does a deletion."""
    files.write(goal.thread_id, "a.txt", iter([b"as it was"]), files.Hand(Writer.USER))
    is_held = threading.Event()
    trouble: list[DatabaseError] = []

    def put_in() -> None:
        try:
            with transaction.atomic():
                files.locked(goal.thread_id)
                is_held.set()
                time.sleep(0.5)
                tell(goal.thread_id, "The user has put a file into the workspace")
        except DatabaseError as error:
            trouble.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=put_in)
    thread.start()
    is_held.wait(10)
    delete_goal(goal)
    thread.join()
    assert trouble == []
    assert not Goal.objects.exists()


def test_files_go_with_their_user(goal: Goal) -> None:
    files.write(goal.thread_id, "a.txt", iter([b"private"]), files.Hand(Writer.USER))
    home = Folder(goal.thread_id).home
    assert home.exists()
    goal.user.delete()
    assert not home.exists()


@pytest.mark.parametrize("name", ["a ", " a", "folder /a", "folder/\u3000a"])
def test_a_name_that_differs_by_blanks_that_nobody_sees_is_no_other_file(goal: Goal, name: str) -> None:
    files.write(goal.thread_id, "a", iter([b"mine"]), files.Hand(Writer.USER))
    other = Folder(goal.thread_id).files / name
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"another")
    assert [entry.path for entry in filing.files_of(goal.thread).entries] == ["a"]


def test_a_folder_that_cannot_be_read_is_told_of(goal: Goal) -> None:
    folder = Folder(goal.thread_id)
    folder.make()
    (folder.files / "bad\nname").mkdir()
    with pytest.raises(files.FileRefused, match="cannot be read, so nobody knows how much room is left"):
        filing.add_file(goal.thread, "a.txt", 1, iter([b"x"]))


def test_what_cannot_be_put_on_record_does_not_happen(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(goal.thread_id, "a.txt", iter([b"as it was"]), files.Hand(Writer.USER))

    def fails(*args: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(deeds, "tell", fails)
    with pytest.raises(OperationalError):
        filing.add_file(goal.thread, "a.txt", 3, iter([b"new"]))
    with pytest.raises(OperationalError):
        filing.delete_file(goal.thread, "a.txt")
    assert (Folder(goal.thread_id).files / "a.txt").read_bytes() == b"as it was"
