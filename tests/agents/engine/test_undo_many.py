"""Taking back much at once leaves things as they were before it, says what stays, and takes no more than was shown
(mission D8, cases UND-01 to UND-03)."""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from agents.undoing import take_back_all
from goals.models import Goal
from memory.ids import new_id
from memory.models import AgentRun, Note
from memory.notes import create_note, update_note
from tests.agents.engine.test_undo import act, body, note, state, undo
from tests.factories import AgentActionFactory, AgentRunFactory, GoalFactory, UserFactory, bearer
from tools import undo_many
from tools.base import ToolContext, ToolError
from tools.builtin.notes import NoteRestorer, image, record
from tools.cancel import CancelToken
from tools.models import AgentAction
from tools.registry import all_tools
from tools.restoring import CannotRestore
from tools.undo_many import batch

__all__ = ["act", "note"]
KINDS = ["create_note", "update_note", "delete_note", "undo_action", "undo_action"]


def ask(user: User, address: str, **body: Any) -> dict[str, Any]:
    """A POST when there is a body, else a GET."""
    send = Client(headers=bearer(user))
    path = f"/api/v1/{address}"
    answer = send.post(path, body, content_type="application/json") if body else send.get(path)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def results(answer: dict[str, Any]) -> list[tuple[str, bool, str]]:
    return [(each["action"]["tool"], each["possible"], each["why"]) for each in answer["results"]]


def changed(run: AgentRun, note: Note, body: str) -> AgentAction:
    before = image(note)
    update_note(note, body=body)
    changes = record(note, before, image(note)).model_dump(mode="json")
    at = timezone.now()
    return AgentActionFactory.create(run=run, tool="update_note", undo=changes, started_at=at, finished_at=at)


def test_und_01_what_the_agent_undid_itself_is_not_done_again(
    goal: Goal, note: Note, act: Callable[..., AgentAction]
) -> None:
    """v1, v2 by the agent, v1 by its own undo: all since then taken back is v1."""
    began = timezone.now().isoformat()
    changed = act("update_note", id=str(note.pk), body="v2")
    back = act("undo_action", id=str(changed.pk))
    assert (back.status, body(note)) == ("done", "v1")
    assert results(ask(goal.user, f"goals/{goal.pk}/undo")) == []
    ask(goal.user, f"goals/{goal.pk}/undo", since=began)
    assert body(note) == "v1"
    assert results(ask(goal.user, f"runs/{back.run_id}/undo")) == [("undo_action", True, "")]
    ask(goal.user, f"runs/{back.run_id}/undo", until=timezone.now().isoformat())
    assert body(note) == "v2", "of the run that undid, the undo is what is taken back"


@hypothesis_settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9), length=st.integers(1, 12))
@pytest.mark.django_db(transaction=True)
def test_a_run_is_taken_back_whole_whatever_it_did_and_undid(seed: int, length: int) -> None:
    Note.objects.all().delete()
    goal = GoalFactory.create()
    create_note(goal.thread, "One", "v1")
    before, run, dice = state(), AgentRunFactory.create(thread=goal.thread), Random(seed)
    for number in range(length):
        _acts(run, dice, number)
    found = batch(goal.user_id, Q(run=run))
    taken = take_back_all(found.actions, goal.user)
    assert [each.why for each in taken if each.undo is None] == []
    assert state() == before
    assert batch(goal.user_id, Q(run=run)).actions == []


def _acts(run: AgentRun, dice: Random, number: int) -> None:
    """A call without a model around it: of a tool, or the undo of any call before it."""
    name = dice.choice(KINDS)
    action = AgentActionFactory.create(run=run, tool=name, status="started", step=number, position=0)
    things = AgentAction.objects.exclude(pk=action.pk).filter(run=run) if name == "undo_action" else Note.objects.all()
    thing = dice.choice([*things.order_by("pk").values_list("pk", flat=True), new_id()])
    arguments = {} if name == "create_note" else {"id": str(thing)}
    arguments |= {"title": f"T{number}", "body": f"B{number}"} if name in ("create_note", "update_note") else {}
    whose = run.thread.user_id, run.thread_id, run.pk, action.pk
    tool, context = all_tools()[name], ToolContext(*whose, CancelToken(), offers=lambda name: True)
    mine = AgentAction.objects.filter(pk=action.pk)
    try:
        with transaction.atomic():
            outcome = tool.run(tool.Arguments.model_validate(arguments), context)
    except ToolError:
        mine.update(status="error")
        return
    undo = outcome.undo.model_dump(mode="json") if outcome.undo else None
    mine.update(status="done", undo=undo, finished_at=timezone.now())


@pytest.mark.django_db(transaction=True)
def test_what_nobody_can_take_back_is_listed_with_the_reason(goal: Goal) -> None:
    run, at = AgentRunFactory.create(thread=goal.thread), timezone.now()
    kept = create_note(goal.thread, "Kept", "v1")
    changed(run, create_note(goal.thread, "Plan", "v1"), "v2")
    changed(run, kept, "v2")
    update_note(kept, body="a line of mine")
    sent = {"run": run, "effect": "non_idempotent", "finished_at": at}
    AgentActionFactory(tool="mail", reversal="irreversible", **sent)
    AgentActionFactory(tool="order", reversal="compensable", status="unknown", **sent)
    planned = AgentActionFactory(run=run, tool="make_plan", effect="local", reversal="compensable", finished_at=at)
    AgentActionFactory(run=run, tool="send_message", effect="idempotent", reversal="irreversible", finished_at=at)
    AgentActionFactory(run=run, tool="read_note", effect="pure", reversal="nothing", finished_at=at)
    stays = [
        ("update_note", False, "“Kept”: It was changed since. (body)"),
        ("order", False, "It is not known whether it happened."),
        ("mail", False, "Cannot be undone."),
        ("make_plan", False, "Cannot be undone; another plan can take its place."),
    ]
    looked = results(ask(goal.user, f"runs/{run.pk}/undo"))
    assert sorted(looked) == sorted([("update_note", True, ""), *stays])
    browser = Client()
    browser.force_login(goal.user)
    page = browser.get(f"/activity/undo/?run={run.pk}").content.decode()
    assert [words in page for *_, words in stays] == [True] * 4
    for address in (f"/actions/{planned.pk}/", "/activity/", f"/goals/{goal.pk}/settings/"):
        assert "Cannot be undone; another plan can take its place" in browser.get(address).content.decode()
    done = results(ask(goal.user, f"runs/{run.pk}/undo", until=timezone.now().isoformat()))
    assert sorted((tool, possible) for tool, possible, _ in done) == sorted((t, p) for t, p, _ in looked)
    assert dict(Note.objects.values_list("title", "body")) == {"Plan": "v1", "Kept": "a line of mine"}


@pytest.mark.django_db(transaction=True)
def test_und_01_c_what_is_done_after_the_look_is_not_taken_back(goal: Goal) -> None:
    run = AgentRunFactory.create(thread=goal.thread)
    first, second = create_note(goal.thread, "First", "v1"), create_note(goal.thread, "Second", "v1")
    changed(run, first, "v2")
    seen = ask(goal.user, f"runs/{run.pk}/undo")["seen"]
    browser = Client()
    browser.force_login(goal.user)
    (page_seen,) = [
        part.split('"')[0]
        for part in browser.get(f"/activity/undo/?run={run.pk}").content.decode().split('name="seen" value="')[1:]
    ]
    changed(run, second, "v2")
    browser.post(f"/activity/undo/?run={run.pk}", {"seen": page_seen})
    assert (body(first), body(second)) == ("v1", "v2")
    assert results(ask(goal.user, f"runs/{run.pk}/undo", until=seen)) == []
    assert body(second) == "v2"


@pytest.mark.django_db(transaction=True)
def test_more_than_fit_at_once_are_counted_and_follow(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_many, "MOST_AT_ONCE", 3)
    run, note = AgentRunFactory.create(thread=goal.thread), create_note(goal.thread, "Plan", "v0")
    for number in range(1, 9):
        changed(run, note, f"v{number}")
    address = f"runs/{run.pk}/undo"
    looked = ask(goal.user, address)
    assert (len(looked["results"]), looked["more"]) == (3, 5)
    browser = Client()
    browser.force_login(goal.user)
    page = browser.get(f"/activity/undo/?run={run.pk}").content.decode()
    assert "5 older actions are not among these." in page
    (older,) = [part.split('"')[0] for part in page.split('<a href="?')[1:]]
    assert "3 older actions" in browser.get(f"/activity/undo/?{older.replace('&amp;', '&')}").content.decode()
    for left, standing in ((5, "v5"), (2, "v2"), (0, "v0")):
        now = timezone.now() + timedelta(seconds=1)
        ask(goal.user, address, until=now.isoformat())
        assert (body(note), ask(goal.user, address)["more"]) == (standing, max(0, left - 3))


@pytest.mark.django_db(transaction=True)
def test_t18_twice_is_the_same_as_once(goal: Goal) -> None:
    run, note = AgentRunFactory.create(thread=goal.thread), create_note(goal.thread, "Plan", "v1")
    action = changed(run, note, "v2")
    undos = []
    for _ in range(2):
        ask(goal.user, f"runs/{run.pk}/undo", until=timezone.now().isoformat())
        undos += [undo(goal.user, action)[1]["id"]]
    assert (body(note), len(set(undos)), AgentAction.objects.filter(undoes=action).count()) == ("v1", 1, 1)


@pytest.mark.django_db(transaction=True)
def test_all_that_ones_agents_did_is_taken_back_and_nothing_of_others(goal: Goal) -> None:
    began = timezone.now()
    other, stranger = GoalFactory.create(user=goal.user), GoalFactory.create(user=UserFactory.create())
    notes = [create_note(each.thread, "Plan", "v1") for each in (goal, other, stranger)]
    for each, plan in zip((goal, other, stranger), notes, strict=True):
        changed(AgentRunFactory.create(thread=each.thread), plan, "v2")
    browser = Client()
    browser.force_login(goal.user)
    address = f"/activity/undo/?since={began.isoformat().replace('+', '%2B')}"
    assert "Undo 2 actions" in browser.get(address).content.decode()
    assert "2 actions were taken back." in browser.post(address, follow=True).content.decode()
    assert list(map(body, notes)) == ["v1", "v1", "v2"]


@pytest.mark.django_db(transaction=True)
def test_und_03_an_undo_that_fails_half_way_leaves_nothing_of_itself_and_can_be_tried_again(
    goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call changed two notes; the second that is put back cannot be written."""
    run = AgentRunFactory.create(thread=goal.thread)
    first, second = create_note(goal.thread, "First", "v1"), create_note(goal.thread, "Second", "v1")
    changes = [change for each in (first, second) for change in changed(run, each, "v2").undo["changes"]]  # type: ignore[index]
    AgentAction.objects.filter(run=run).update(undone=True)
    sent = {"changes": changes, "lasting": ["The mail was sent."]}
    action = AgentActionFactory.create(run=run, tool="update_note", undo=sent, finished_at=timezone.now())
    write = NoteRestorer.write

    def fails(self: NoteRestorer, owner: int, key: str, image: Any) -> None:
        if key == str(first.pk):
            raise CannotRestore("the disk is full.")
        write(self, owner, key, image)

    with monkeypatch.context() as patch:
        patch.setattr(NoteRestorer, "write", fails)
        answer = ask(goal.user, f"runs/{run.pk}/undo", until=timezone.now().isoformat())
    assert results(answer) == [("update_note", False, "“First” cannot be put back: the disk is full.")]
    assert (body(first), body(second), AgentAction.objects.get(pk=action.pk).undone) == ("v2", "v2", False)
    parts = ask(goal.user, f"actions/{action.pk}/undo")["parts"]
    assert [(part["verdict"], part["why"]) for part in parts] == [
        *[("undo", "")] * 2,
        ("lasting", "The mail was sent."),
    ]
    assert undo(goal.user, action)[0] == 200
    assert (body(first), body(second), AgentAction.objects.get(pk=action.pk).undone) == ("v1", "v1", True)
