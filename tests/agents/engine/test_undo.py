"""What an agent did is taken back: by it, by its user on the page, over the API (mission D8, cases UND-01, UND-02)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from agents import services
from agents.engine import jobs
from agents.live.events import ToolComplete
from agents.models import AgentTask
from agents.undoing import take_back
from goals.models import Goal
from goals.services import create_goal
from memory.ids import new_id
from memory.models import AgentRun, Note
from memory.notes import create_note, update_note
from tests.agents.engine.test_posting import Events, events
from tests.factories import AgentActionFactory, AgentRunFactory, UserFactory, bearer
from tests.llm_server import LLMServer, Reply
from tests.processes import wait_until
from tests.rewriting import rewriting
from tools.base import ToolContext, ToolError
from tools.cancel import CancelToken
from tools.models import AgentAction
from tools.registry import all_tools

__all__ = ["events"]

type Say = Callable[..., AgentRun]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


@pytest.fixture
def note(goal: Goal) -> Note:
    return create_note(goal.thread, "Shoes", "v1")


@pytest.fixture
def act(goal: Goal, say: Say, llm: LLMServer) -> Callable[..., AgentAction]:
    """Let the agent call one tool; returns the record of the call."""

    def act(tool: str, **arguments: object) -> AgentAction:
        llm.script([Reply(calls=[(tool, arguments)]), Reply(text="Done.")])
        run = say("Go on")
        return AgentAction.objects.get(run=run)

    return act


def undo(user: User, action: AgentAction) -> tuple[int, dict[str, Any]]:
    path = f"/api/v1/actions/{action.pk}/undo"
    answer = Client().post(path, {}, content_type="application/json", headers=bearer(user))
    return answer.status_code, answer.json()


def preview(user: User, action: AgentAction) -> list[dict[str, Any]]:
    answer = Client().get(f"/api/v1/actions/{action.pk}/undo", headers=bearer(user)).json()
    assert answer["possible"] is all(part["verdict"] == "undo" for part in answer["parts"])
    return list(answer["parts"])


def body(note: Note) -> str:
    return Note.objects.get(pk=note.pk).body


def test_und_01_an_update_is_taken_back_and_done_again(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    assert body(note) == "v2"

    status, answer = undo(goal.user, action)

    assert (status, body(note)) == (200, "v1")
    back = AgentAction.objects.get(pk=answer["id"])
    assert (back.tool, back.run, back.undoes, back.user) == ("undo_action", None, action, goal.user)
    assert undo(goal.user, back)[0] == 200
    assert body(note) == "v2"
    assert undo(goal.user, action)[0] == 200
    assert body(note) == "v1"


def test_an_undo_of_an_undo_of_an_undo_leaves_all_of_them_as_they_hold(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    chain = [act("update_note", id=str(note.pk), body="v2")]
    for number, standing in enumerate(("v1", "v2", "v1", "v2"), 1):
        chain.append(take_back(chain[-1], goal.user))
        assert body(note) == standing
        undone = [AgentAction.objects.get(pk=each.pk).undone for each in chain]
        assert undone == [(number - place) % 2 == 1 for place in range(number)] + [False]


def test_und_01_a_what_was_edited_since_is_never_lost(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    update_note(Note.objects.get(pk=note.pk), body="v3")

    (part,) = preview(goal.user, action)
    assert (part["verdict"], part["changed_since"]) == ("conflict", ["body"])
    assert (part["before"]["body"], part["after"]["body"], part["now"]["body"]) == ("v1", "v2", "v3")
    status, answer = undo(goal.user, action)

    assert (status, answer["error"]["code"], body(note)) == (400, "not_undone", "v3")
    assert answer["error"]["message"] == "Nothing was undone. “Shoes”: It was changed since. (body)"
    assert not AgentAction.objects.filter(undoes=action).exists()


def test_und_01_b_an_edit_of_another_field_stays(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    update_note(Note.objects.get(pk=note.pk), title="Boots")

    assert undo(goal.user, action)[0] == 200

    now = Note.objects.get(pk=note.pk)
    assert (now.title, now.body) == ("Boots", "v1")


def test_und_01_c_an_edit_that_lands_meanwhile_is_not_lost(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    """The edit holds the note's row when the undo comes, and is committed while that waits."""
    action = act("update_note", id=str(note.pk), body="v2")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            update_note(Note.objects.get(pk=note.pk), body="v3")
            undone = pool.submit(undo, goal.user, action)
            wait_until(waits_for_a_lock)
        status, _ = undone.result(30)
        pool.submit(connections.close_all).result()

    assert (status, body(note)) == (400, "v3")


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


def test_und_01_e_the_first_of_two_updates_is_not_taken_back_alone(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    first = act("update_note", id=str(note.pk), body="v2")
    second = act("update_note", id=str(note.pk), body="v3")

    assert undo(goal.user, first)[0] == 400
    assert body(note) == "v3"
    assert [undo(goal.user, each)[0] for each in (second, first)] == [200, 200]
    assert body(note) == "v1"


def test_und_01_f_what_is_as_before_already_is_said_so(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    update_note(Note.objects.get(pk=note.pk), body="v1")

    status, answer = undo(goal.user, action)

    assert (status, answer["error"]["message"]) == (400, "It is as it was before; there is nothing to undo.")


def test_und_02_a_note_that_was_created_goes_and_one_that_was_edited_since_stays(
    goal: Goal, act: Callable[..., AgentAction]
) -> None:
    gone, kept = (act("create_note", title=title, body="x") for title in ("Gone", "Kept"))
    update_note(Note.objects.get(title="Kept"), body="x and a line of mine")

    assert undo(goal.user, gone)[0] == 200
    assert undo(goal.user, kept)[0] == 400

    assert list(Note.objects.values_list("title", "body")) == [("Kept", "x and a line of mine")]


def test_und_02_a_note_that_was_deleted_is_back_as_it_was(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    before = Note.objects.filter(pk=note.pk).values("title", "body", "author", "created_at", "thread").get()
    action = act("delete_note", id=str(note.pk))
    assert not Note.objects.exists()

    assert undo(goal.user, action)[0] == 200

    assert Note.objects.filter(pk=note.pk).values(*before).get() == before


def many(user: User, path: str, body: dict[str, str] | None = None) -> list[tuple[str, bool]]:
    answer = Client().post(f"/api/v1/{path}", body or {}, content_type="application/json", headers=bearer(user)).json()
    return [(each["action"]["tool"], each["possible"]) for each in answer["results"]]


def looks(user: User, path: str) -> list[tuple[str, bool]]:
    answer = Client().get(f"/api/v1/{path}", headers=bearer(user)).json()
    return [(each["action"]["tool"], each["possible"]) for each in answer["results"]]


def test_a_whole_run_is_taken_back_the_last_first_and_what_was_edited_since_stays(
    goal: Goal, note: Note, say: Say, llm: LLMServer
) -> None:
    edits: list[tuple[str, dict[str, object]]] = [
        ("update_note", {"id": str(note.pk), "body": v}) for v in ("v2", "v3")
    ]
    made: list[tuple[str, dict[str, object]]] = [("create_note", {"title": t, "body": "x"}) for t in ("Gone", "Kept")]
    llm.script([*(Reply(calls=[call]) for call in (*edits, *made)), Reply(text="Done.")])
    run = say("Go on")
    update_note(Note.objects.get(title="Kept"), body="x and a line of mine")

    expected = [("create_note", False), ("create_note", True), ("update_note", True), ("update_note", True)]
    assert looks(goal.user, f"runs/{run.pk}/undo") == expected
    assert Note.objects.count() == 3, "to look changes nothing"
    assert many(goal.user, f"runs/{run.pk}/undo") == expected

    assert sorted(Note.objects.values_list("title", "body")) == [("Kept", "x and a line of mine"), ("Shoes", "v1")]
    assert many(goal.user, f"runs/{run.pk}/undo") == [("create_note", False)]


def test_what_was_done_since_a_moment_is_taken_back(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    act("update_note", id=str(note.pk), body="v2")
    second = act("update_note", id=str(note.pk), body="v3")
    assert second.finished_at
    since = second.finished_at.isoformat()

    assert looks(goal.user, f"goals/{goal.pk}/undo?since={quote(since)}") == [("update_note", True)]
    assert many(goal.user, f"goals/{goal.pk}/undo", {"since": since}) == [("update_note", True)]

    assert body(note) == "v2"
    assert looks(goal.user, f"goals/{goal.pk}/undo") == [("update_note", True)]
    answer = Client().get(f"/api/v1/goals/{goal.pk}/undo?since=yesterday", headers=bearer(goal.user))
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["since"])
    path = f"/api/v1/goals/{goal.pk}/undo"
    answer = Client().post(path, {}, content_type="application/json", headers=bearer(goal.user))
    assert (answer.status_code, body(note)) == (400, "v2")


def test_t18_an_undo_is_its_owners_and_happens_once(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    stranger = UserFactory.create()

    assert undo(stranger, action)[0] == 404
    assert Client().get(f"/api/v1/actions/{action.pk}/undo", headers=bearer(stranger)).status_code == 404
    assert body(note) == "v2"
    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda _: undo(goal.user, action), range(2)))
        list(both.map(lambda _: connections.close_all(), range(2)))
    assert [status for status, _ in answers] == [200, 200]
    assert {answer["id"] for _, answer in answers} == {str(AgentAction.objects.get(undoes=action).pk)}
    assert body(note) == "v1"


def test_what_only_reads_or_failed_cannot_be_undone(goal: Goal, act: Callable[..., AgentAction]) -> None:
    for action in (act("list_notes"), act("update_note", id=str(new_id()), body="x")):
        status, answer = undo(goal.user, action)
        assert (status, answer["error"]["code"]) == (400, "not_undone")


def test_the_agent_takes_back_what_it_did_and_its_user_may_do_it_again(
    goal: Goal, note: Note, act: Callable[..., AgentAction], llm: LLMServer
) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    listed = act("list_recent_actions").output
    assert f"Changed a note Shoes (id {action.pk}, " in listed
    assert "can be undone" in listed

    back = act("undo_action", id=str(action.pk))

    assert (back.status, back.undoes, body(note)) == ("done", action, "v1")
    assert "Changed a note Shoes" in act("list_recent_actions").output
    assert undo(goal.user, back)[0] == 200
    assert body(note) == "v2"
    assert "Undid Undid" not in act("list_recent_actions").output
    act("list_notes")
    assert "The user has done this again: Changed a note Shoes" in str(llm.requests[-1].body)


def test_whoever_looks_on_is_told_of_what_was_taken_back(
    goal: Goal, note: Note, act: Callable[..., AgentAction], events: Events
) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    events.clear()
    back = act("undo_action", id=str(action.pk))
    assert action.pk in changed_cells(events)
    events.clear()
    undo(goal.user, back)
    assert changed_cells(events) == {action.pk, back.pk}


def changed_cells(events: Events) -> set[UUID]:
    return {event.action for _, event in events if isinstance(event, ToolComplete)}


def test_an_agent_cannot_take_back_what_another_agent_did(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    other = create_goal(goal.user, "Another").thread
    with rewriting():
        AgentAction.objects.filter(pk=action.pk).update(thread=other)

    back = act("undo_action", id=str(action.pk))

    assert (back.status, body(note)) == ("error", "v2")


def test_a_helper_that_is_at_work_is_called_back_and_one_that_is_over_is_not(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    send_off = [Reply(calls=[("create_task", {"title": "Look", "instructions": "Look around"})]), Reply(text="Sent.")]
    llm.script(send_off)
    services.send_message(goal.thread, "Send somebody")
    jobs.run(str(rung.pop(0)))
    task = AgentTask.objects.get()
    action = AgentAction.objects.get(tool="create_task")

    status, answer = undo(goal.user, action)

    task.refresh_from_db()
    assert (status, task.status) == (200, "cancelled")
    back = AgentAction.objects.get(pk=answer["id"])
    assert undo(goal.user, back)[0] == 400
    assert f"/actions/{back.pk}/undo" not in page_of(goal)
    while rung:
        jobs.run(str(rung.pop(0)))
    llm.script([*send_off, Reply(text="Here is what I saw."), Reply(text="Thanks.")])
    say("Send somebody again")
    assert AgentTask.objects.filter(status="completed").exists()
    status, answer = undo(goal.user, AgentAction.objects.filter(tool="create_task").latest("created_at"))
    assert (status, "its report has come" in answer["error"]["message"]) == (400, True)


def test_only_a_helper_that_is_at_work_can_be_called_back_and_every_page_says_so(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], events: Events
) -> None:
    llm.script([Reply(calls=[("create_task", {"title": "Look", "instructions": "Look round"})]), Reply(text="Sent.")])
    services.send_message(goal.thread, "Send somebody")
    jobs.run(str(rung.pop(0)))
    action = AgentAction.objects.get(tool="create_task")
    client = Client()
    client.force_login(goal.user)

    def told() -> tuple[list[bool], str]:
        pages = [f"/goals/{goal.pk}/", "/activity/", "/activity/?state=undoable"]
        offers = [f"/actions/{action.pk}/undo" in client.get(page).content.decode() for page in pages]
        listed = Client().get("/api/v1/actions?tool=create_task", headers=bearer(goal.user)).json()["results"]
        return [*offers, listed[0]["undoable"]], client.get(f"/actions/{action.pk}/").content.decode()

    offered, details = told()
    assert (offered, "Can be undone" in details) == ([True] * 4, True)
    events.clear()

    llm.script([Reply(text="Here is what I saw."), Reply(text="Thanks.")])
    while rung:
        jobs.run(str(rung.pop(0)))

    offered, details = told()
    assert (offered, "It is over, and its report has come." in details) == ([False] * 4, True)
    assert "once the helper has reported" in client.get("/activity/").content.decode()
    assert action.pk in changed_cells(events)  # the pages that are open drop the button


def page_of(goal: Goal) -> str:
    client = Client()
    client.force_login(goal.user)
    return client.get(f"/goals/{goal.pk}/").content.decode()


def test_the_page_takes_back_and_does_again(goal: Goal, note: Note, act: Callable[..., AgentAction]) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    client = Client()
    client.force_login(goal.user)
    address = f"/goals/{goal.pk}/"
    details = client.get(f"/actions/{action.pk}/").content.decode()
    assert "<del>v1</del> <ins>v2</ins>" in details
    assert f"/actions/{action.pk}/undo" in client.get(address).content.decode()

    assert client.post(f"/actions/{action.pk}/undo", {"next": address}).status_code == 302

    page = client.get(address).content.decode()
    back = AgentAction.objects.get(undoes=action)
    assert (body(note), 'data-state="undone"' in page, f"/actions/{back.pk}/undo" in page) == ("v1", True, True)
    client.post(f"/actions/{back.pk}/undo", {"next": address})
    page = client.get(address).content.decode()
    assert (body(note), 'data-state="undone"' in page) == ("v2", False)


def test_the_page_of_an_action_is_for_people_and_leads_back(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    action = act("update_note", id=str(note.pk), body="v2")
    client = Client()
    client.force_login(goal.user)
    page = client.get(f"/actions/{action.pk}/").content.decode()
    main = page[page.index("<h1") :]
    plain, details = main.split("Details</summary>")
    assert f'<a href="/goals/{goal.pk}/" dir="auto">{goal.title}</a>' in plain
    assert all(f"<dt>{name}</dt>" in plain for name in ("When", "Goal", "Result", "Changed body", "Undo"))
    assert ("Changed a note Shoes" in plain, "<dd>Done</dd>" in plain) == (True, True)
    assert (str(note.pk) in plain, str(note.pk) in details) == (False, True)  # what only machines read is folded

    address = f"/actions/{action.pk}/undo"
    assert f'action="{address}"' in details
    assert client.post(address, {"next": f"/actions/{action.pk}/"})["Location"] == f"/actions/{action.pk}/"
    page = client.get(f"/actions/{action.pk}/").content.decode()
    assert (body(note), '<dd dir="auto">Undone</dd>' in page, "Redo" in page) == ("v1", True, True)

    cell = client.get(f"/actions/{action.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert ("<dt>When</dt>" in cell.split("Details</summary>")[0], "<h1" in cell) == (True, False)


@given(st.lists(st.tuples(st.sampled_from(["create", "update", "delete"]), TEXT, TEXT), max_size=6), st.randoms())
@hypothesis_settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_done_to_notes_is_taken_back_in_reverse(
    goal: Goal, acts: list[tuple[str, str, str]], dice: Random
) -> None:
    """Random state, random acts, undo: the same state; and done again the state after them."""
    Note.objects.all().delete()
    for number in range(3):
        create_note(goal.thread, f"Note {number}", "x")
    run, before = AgentRunFactory(thread=goal.thread), state()
    actions = [action for each in acts if (action := acted(run, dice, *each))]
    after = state()
    undone = [take_back(action, goal.user) for action in reversed(actions)]
    assert state() == before
    again = [take_back(back, goal.user) for back in reversed(undone)]
    assert state() == after
    for each in reversed(again):
        take_back(each, goal.user)
    assert state() == before


def acted(run: AgentRun, dice: Random, kind: str, title: str, text: str) -> AgentAction | None:
    """A call of a tool without a model around it; None when it was refused or changed nothing."""
    notes = list(Note.objects.order_by("pk"))
    arguments = {"title": title, "body": text} if kind != "delete" else {}
    if kind != "create":
        arguments["id"] = str(dice.choice(notes).pk) if notes else str(new_id())
    tool, action = all_tools()[f"{kind}_note"], AgentActionFactory(run=run, tool=f"{kind}_note", status="started")
    context = ToolContext(run.thread.user_id, run.thread_id, run.pk, action.pk, CancelToken())
    try:
        with transaction.atomic():
            outcome = tool.run(tool.Arguments.model_validate(arguments), context)
    except ToolError:
        return None
    if outcome.undo is None:
        return None
    action.status, action.undo = "done", outcome.undo.model_dump(mode="json")
    action.save()
    return action


def state() -> list[tuple[object, ...]]:
    return sorted(Note.objects.values_list("id", "title", "body", "author", "created_at", "thread"))
