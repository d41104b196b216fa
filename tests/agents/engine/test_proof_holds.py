"""A deed proves one step, and as long as it holds (missions A8 and H3)."""

from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from agents.models import PlanItem
from agents.undoing import take_back
from goals.models import Goal
from memory.models import Author, Note
from memory.notes import create_note, update_note
from tests.agents.engine.test_plans import (
    LIST,
    NOTE,
    PLAN,
    SEND,
    Call,
    Say,
    closes,
    does,
    helped,
    states,
    workspaces as workspaces,
)
from tests.agents.engine.test_proof import GONE, NOT_WRITTEN, Lie, closes_nothing
from tests.agents.engine.test_workspace import needs_sandbox
from tests.llm_server import LLMServer
from tests.web_site import Site, site
from tools import filing
from tools.file_models import WorkspaceFile, Writer
from tools.models import AgentAction
from tools.sandbox.folder import Folder


def written_and_deleted(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, LIST, ("delete_file", {"path": "list.md"}))
    return closes(("action", "write_file"))


def deleted_what_it_wrote(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """In the end nothing has come of it."""
    does(say, llm, LIST, ("delete_file", {"path": "list.md"}))
    return closes(("action", "delete_file"))


def overwritten_and_deleted(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """Its user's file is gone, and so is what it wrote into it."""
    filing.add_file(goal.thread, "list.md", 1, iter([b"x"]))
    return written_and_deleted(goal, say, llm)


def noted_and_deleted(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, NOTE)
    does(say, llm, ("delete_note", {"id": str(Note.objects.get().pk)}))
    return closes(("action", "create_note"))


def deleted_what_it_noted(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, NOTE)
    does(say, llm, ("delete_note", {"id": str(Note.objects.get().pk)}))
    return closes(("action", "delete_note"))


def changed_and_changed_back(goal: Goal, say: Say, llm: LLMServer) -> Call:
    note = create_note(goal.thread, "Shoes", "red", Author.USER)
    does(say, llm, *(("update_note", {"id": str(note.pk), "body": body}) for body in ("blue", "red")))
    return closes(("note", "Shoes"))


def a_rewritten_note(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """Its user has written something else."""
    does(say, llm, NOTE)
    update_note(Note.objects.get(), body="My own thoughts.")
    return closes(("note", "Shoes"))


def a_rewritten_note_by_its_call(goal: Goal, say: Say, llm: LLMServer) -> Call:
    a_rewritten_note(goal, say, llm)
    return closes(("action", "create_note"))


def a_file_that_was_so(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It has written what its user had put there."""
    filing.add_file(goal.thread, "list.md", 5, iter([b"- red"]))
    does(say, llm, LIST)
    return closes(("file", "list.md"))


def writing_a_file_that_was_so(goal: Goal, say: Say, llm: LLMServer) -> Call:
    a_file_that_was_so(goal, say, llm)
    return closes(("action", "write_file"))


def a_note_that_was_so(goal: Goal, say: Say, llm: LLMServer) -> Call:
    note = create_note(goal.thread, "Shoes", "red", Author.USER)
    does(say, llm, ("update_note", {"id": str(note.pk), "title": "Shoes"}))
    return closes(("action", "update_note"))


def a_note_only_touched(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It was the proof of another step, and is as it was then."""
    does(say, llm, NOTE, closes(("note", "Shoes"), subtask="1.2"))
    does(say, llm, ("update_note", {"id": str(Note.objects.get().pk), "title": "Shoes"}))
    return closes(("note", "Shoes"))


def a_file_and_its_call(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, LIST, closes(("file", "list.md"), subtask="1.2"))
    return closes(("action", "write_file"))


def a_note_and_its_call(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, NOTE, closes(("action", "create_note"), subtask="1.2"))
    return closes(("note", "Shoes"))


def one_of_two_is_used(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, LIST, NOTE, closes(("file", "list.md"), subtask="1.2"))
    return closes(("note", "Shoes"), ("file", "list.md"))


def a_look_by_a_command(goal: Goal, say: Say, llm: LLMServer) -> Call:
    does(say, llm, ("run_cmd", {"command": "ls"}))
    return closes(("action", "run_cmd"))


def a_file_of_somebody_unknown(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """A command has seen it."""
    folder = Folder(goal.thread_id)
    folder.make()
    (folder.files / "list.md").write_text("of somebody else")
    does(say, llm, ("run_cmd", {"command": "ls"}))
    return closes(("file", "list.md"))


def of_an_older_helper(goal: Goal, say: Say, llm: LLMServer) -> Call:
    """It was sent off before the plan, for something else."""
    helped(say, llm, SEND, PLAN)
    return closes(("action", str(AgentAction.objects.get(tool="write_file").pk)))


def the_report_of_an_older_helper(goal: Goal, say: Say, llm: LLMServer) -> Call:
    helped(say, llm, SEND, PLAN)
    return closes(("note", "Look"))


def a_rewritten_report(goal: Goal, say: Say, llm: LLMServer) -> Call:
    helped(say, llm, SEND)
    update_note(Note.objects.get(), body="My own thoughts.")
    return closes(("note", "Look"))


BY_COMMANDS: tuple[Lie, ...] = (a_look_by_a_command, a_file_of_somebody_unknown)
LIES: dict[Lie, str] = {
    written_and_deleted: GONE,
    deleted_what_it_wrote: GONE,
    overwritten_and_deleted: GONE,
    noted_and_deleted: GONE,
    deleted_what_it_noted: GONE,
    changed_and_changed_back: GONE,
    a_rewritten_note: GONE,
    a_rewritten_note_by_its_call: GONE,
    a_file_that_was_so: NOT_WRITTEN,
    writing_a_file_that_was_so: "it changed nothing.",
    a_note_that_was_so: "it changed nothing.",
    a_note_only_touched: "has proved subtask 1.2 already",
    a_file_and_its_call: "has proved subtask 1.2 already",
    a_note_and_its_call: "has proved subtask 1.2 already",
    one_of_two_is_used: "'list.md' has proved subtask 1.2 already",
    a_look_by_a_command: "it changed nothing.",
    a_file_of_somebody_unknown: NOT_WRITTEN,
    of_an_older_helper: "that can prove a step",
    the_report_of_an_older_helper: NOT_WRITTEN,
    a_rewritten_report: NOT_WRITTEN,
}


@pytest.mark.parametrize(
    "lie", [pytest.param(lie, id=lie.__name__, marks=[needs_sandbox] * (lie in BY_COMMANDS)) for lie in LIES]
)
def test_what_does_not_hold_or_was_used_closes_nothing(lie: Lie, goal: Goal, say: Say, llm: LLMServer) -> None:
    closes_nothing(lie, LIES[lie], goal, say, llm)


def test_honest_work_that_goes_on_where_it_ended_is_proven(goal: Goal, say: Say, llm: LLMServer) -> None:
    """The first call is built upon before its step is closed."""
    does(say, llm, PLAN, LIST)
    first = str(AgentAction.objects.get(tool="write_file").pk)
    more: Call = ("write_file", {"path": "list.md", "content": "- red\n- blue"})
    does(say, llm, more, closes(("file", "list.md"), subtask="1.2"), closes(("action", first)))
    assert states(goal)["1"] == "done"


def test_deleting_what_was_there_before_is_a_deed(goal: Goal, say: Say, llm: LLMServer) -> None:
    filing.add_file(goal.thread, "old.md", 1, iter([b"x"]))
    does(say, llm, PLAN, ("delete_file", {"path": "old.md"}), closes(("action", "delete_file")))
    assert states(goal)["1.1"] == "done"


@needs_sandbox
def test_a_command_that_changed_something_is_a_deed_and_what_it_wrote_another_name_of_it(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_COMMANDS_ALLOWED = ["cp"]
    does(say, llm, PLAN, LIST, closes(("action", "write_file")))
    does(say, llm, ("run_cmd", {"command": "cp list.md copy.md"}))
    does(say, llm, closes(("file", "copy.md"), subtask="1.2"), closes(("action", "run_cmd"), subtask="2.1"))
    assert (states(goal)["1.2"], states(goal)["2.1"]) == ("done", "open")


@needs_sandbox
def test_a_check_that_changed_nothing_proves_one_step(goal: Goal, say: Say, llm: LLMServer, settings: Settings) -> None:
    settings.WAYMARK_COMMANDS_ALLOWED = ["test"]
    check: Call = ("run_cmd", {"command": "test -f list.md"})
    (*_, told) = does(say, llm, PLAN, check, closes(("action", "run_cmd")))
    assert "it ended without success." in told
    does(say, llm, LIST, check, closes(("action", "run_cmd")), check, closes(("action", "run_cmd"), subtask="1.2"))
    assert (states(goal)["1.1"], states(goal)["1.2"]) == ("done", "open")


@needs_sandbox
def test_a_file_of_somebody_unknown_does_not_become_the_agents(goal: Goal, say: Say, llm: LLMServer) -> None:
    a_file_of_somebody_unknown(goal, say, llm)
    assert WorkspaceFile.objects.get(path="list.md").writer not in (Writer.AGENT, Writer.COMMAND)


def test_a_file_that_was_so_stays_its_users(goal: Goal, say: Say, llm: LLMServer) -> None:
    a_file_that_was_so(goal, say, llm)
    assert WorkspaceFile.objects.get(path="list.md").writer == Writer.USER


def test_a_note_that_was_so_is_not_touched(goal: Goal, say: Say, llm: LLMServer) -> None:
    note = create_note(goal.thread, "Shoes", "red", Author.USER)
    does(say, llm, ("update_note", {"id": str(note.pk), "title": "Shoes"}))
    assert Note.objects.get().updated_at == note.updated_at


@pytest.fixture
def web(settings: Settings) -> Iterator[Site]:
    with site() as served:
        settings.WAYMARK_FETCH_PRIVATE = [served.place]
        settings.WAYMARK_SEARCH, settings.WAYMARK_SEARXNG_URL = "searxng", served.address
        yield served


def test_a_page_that_was_read_proves_one_step_however_often(goal: Goal, say: Say, llm: LLMServer, web: Site) -> None:
    web.found = [("Shoes", f"{web.address}/shoes", "2026-03-04", "Shoes.")]
    web.pages["/shoes"] = (200, "text/plain", b"red")
    search: Call = ("web_search", {"query": "shoes"})
    page: Call = ("web_fetch", {"url": f"{web.address}/shoes"})
    does(say, llm, PLAN, search, closes(("action", "web_search")), page, closes(("action", "web_fetch"), subtask="1.2"))
    assert states(goal)["1"] == "done"
    (_, told) = does(say, llm, page, closes(("action", "web_fetch"), subtask="2.1"))
    assert "has proved subtask 1.2 already" in told


def test_a_search_that_found_nothing_proves_nothing(goal: Goal, say: Say, llm: LLMServer, web: Site) -> None:
    (*_, told) = does(say, llm, PLAN, ("web_search", {"query": "shoes"}), closes(("action", "web_search")))
    assert "it ended without success." in told


def test_a_step_whose_proof_was_undone_is_open_again(goal: Goal, say: Say, llm: LLMServer, client: Client) -> None:
    does(say, llm, PLAN, NOTE, closes(("note", "Shoes")), LIST, closes(("file", "list.md"), subtask="1.2"))
    undo = take_back(AgentAction.objects.get(tool="create_note"), goal.user)
    (told,) = does(say, llm, closes(subtask="7"))
    assert "Open ones: 1.1, 2.1." in told
    (reminder,) = [text for text in user_texts(llm) if "proved it was undone" in text]
    assert "<plan>\n1 Find shoes [done, but what proved it was undone]\n  1.1 Write a list [done, but" in reminder
    assert "  1.2 Keep it [done]" in reminder
    client.force_login(goal.user)
    assert client.get(f"/goals/{goal.pk}/").text.count("its proof is gone") == 2
    take_back(undo, goal.user)
    (told,) = does(say, llm, closes(("note", "Shoes")))
    assert "Subtask 1.1 is done already" in told, "what was undone was done again"
    take_back(AgentAction.objects.get(tool="create_note"), goal.user)
    does(say, llm, NOTE, closes(("note", "Shoes")))
    assert PlanItem.objects.current().get(number="1").status == "done"
    assert "its proof is gone" not in client.get(f"/goals/{goal.pk}/").text


def user_texts(llm: LLMServer) -> list[str]:
    return [str(message["content"]) for message in llm.requests[-1].messages if message["role"] == "user"]


def test_a_step_whose_proof_was_undone_can_be_given_up(goal: Goal, say: Say, llm: LLMServer) -> None:
    does(say, llm, PLAN, NOTE, closes(("note", "Shoes")), closes(subtask="1.2", success=False))
    take_back(AgentAction.objects.get(tool="create_note"), goal.user)
    does(say, llm, closes(success=False, reason="It is not wanted."))
    assert states(goal)["1.1"] == "failed"
