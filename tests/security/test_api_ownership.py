"""T1: nobody reaches anybody else's things. The matrix is generated from the URL resolver, not written by hand."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from agents.api.base import Access
from agents.budgets.models import Budget
from agents.engine import bell
from agents.models import DeviceToken, ModelPrice, UserAgent
from agents.plans import PlannedStep, PlannedTask, make_plan
from agents.services import assistant_of
from goals import measuring, schedules
from goals.models import Feed, FeedItem, Goal, Look, Measurement, Notice, PushDevice, Schedule, Target
from memory.degrade import HISTORY_REFUSED
from memory.documents import keep_document_version, place, write_document
from memory.models import (
    AgentHistory,
    AgentRun,
    Attachment,
    Document,
    DocumentVersion,
    Learning,
    Note,
    NoteVersion,
    RunStatus,
    Skill,
    Thread,
    ThreadMessage,
)
from memory.notes import keep_version
from memory.skills import add_skill, change_skill
from tests.factories import (
    AgentActionFactory,
    AgentHistoryFactory,
    AgentRunFactory,
    ApprovalFactory,
    AssessmentFactory,
    AttachmentFactory,
    BudgetFactory,
    FeedItemFactory,
    GoalFactory,
    LearningFactory,
    ModelPriceFactory,
    NoteFactory,
    PartFactory,
    ProposalFactory,
    PushDeviceFactory,
    ReceiptFactory,
    ThreadMessageFactory,
    UserFactory,
    bearer,
    nobody,
)
from tests.rewriting import rewriting
from tools import files
from tools.file_models import Writer
from tools.mcp.models import McpServer
from tools.models import AgentAction, Approval
from tools.part_models import Assessment, Part, Proposal
from tools.parts import digest_of
from tools.sandbox.folder import Folder
from tools.signature import digest

pytestmark = pytest.mark.django_db(transaction=True)

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
CANARY = "canary-of-"
SUBSCRIPTION: dict[str, Any] = {
    "endpoint": "https://push.example/mine",
    "keys": {
        "p256dh": "BD7Xoo7GSO3OXVt-JS9rKq-7RINRFKJLPKqPcQ9kmTvCVxGjTNySKQgLY58Jl3_rfKkezOFkm_6orYXHKyBq3n4",
        "auth": "MDEyMzQ1Njc4OWFiY2RlZg",
    },
}
# A well-formed body for each route that takes one, so that nothing is refused for its form.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("goals", "POST"): {"title": "Mine"},
    ("goal", "PATCH"): {"title": "Changed"},
    ("goal_messages", "POST"): {"content": "Changed"},
    ("agent_messages", "POST"): {"content": "Mine"},
    ("goal_notes", "POST"): {"title": "Changed"},
    ("note", "PATCH"): {"title": "Changed"},
    ("goal_learnings", "POST"): {"text": "Changed"},
    ("learning", "PATCH"): {"text": "Changed"},
    ("agent_learnings", "POST"): {"text": "Mine"},
    ("documents", "POST"): {"name": "SOUL", "text": "Mine"},
    ("goal_documents", "POST"): {"name": "MEMORY", "text": "Changed"},
    ("agent_documents", "POST"): {"name": "2026-11-29", "text": "Mine"},
    ("document", "PATCH"): {"text": "Changed"},
    ("skills", "POST"): {"text": "---\nname: mine\ndescription: Mine\n---"},
    ("skill", "PATCH"): {"is_on": True, "off_for": []},
    ("goal_target", "PUT"): {"name": "Changed", "value": 7, "deadline": "2099-01-02"},
    ("goal_measurements", "POST"): {"value": 4, "note": "Changed"},
    ("goal_schedules", "POST"): {"time": "every day 9:00", "intent": "Changed"},
    ("agent_schedules", "POST"): {"time": "every day 9:00"},
    ("schedule", "PATCH"): {"intent": "Changed"},
    ("budgets", "POST"): {"window": "day", "money": "1"},
    ("budget", "PATCH"): {"money": "2"},
    ("approval_decide", "POST"): {"decision": "reject", "hash": digest("create_note", {"title": "Shoes"})},
    ("goal_undo", "POST"): {"since": "2026-01-01T00:00:00Z"},
    ("action_resolve", "POST"): {"resolution": "happened"},
    ("mcp_servers", "POST"): {"name": "mine", "url": "http://127.0.0.1/mcp"},
    ("mcp_server", "PATCH"): {"enabled": False},
    ("mcp_accept", "POST"): {"digests": []},
    ("part_confirm", "POST"): {"shown": "x"},
    ("proposal_decide", "POST"): {"decision": "accept", "shown": "x"},
    ("feed_item", "PATCH"): {"rating": -1, "dismissed": True},
    ("updates_seen", "POST"): {"until": "2026-01-01T00:00:00Z"},
    ("push_devices", "POST"): SUBSCRIPTION,
    ("prices", "POST"): {"kind": "openai", "model": "mine", "input": "1", "output": "2"},
}
TABLES: tuple[type[Model], ...] = (
    Goal,
    Note,
    Learning,
    Document,
    Skill,
    Schedule,
    Target,
    Measurement,
    Thread,
    ThreadMessage,
    AgentRun,
    AgentAction,
    Approval,
    AgentHistory,
    Attachment,
    UserAgent,
    Budget,
    ModelPrice,
    McpServer,
    Part,
    Assessment,
    Proposal,
    Feed,
    FeedItem,
    Look,
    Notice,
    PushDevice,
)


@dataclass(frozen=True)
class Person:
    """A user with one of everything."""

    user: User
    ids: dict[str, Any]

    @property
    def canary(self) -> str:
        return f"{CANARY}{self.user.username}"


def person() -> Person:
    user = UserFactory()
    mark = f"{CANARY}{user.username}"
    goal = GoalFactory(user=user, title=mark, description=mark)
    run = AgentRunFactory(thread=goal.thread, error=mark, status=RunStatus.FAILED, reason=HISTORY_REFUSED)
    note = NoteFactory(thread=goal.thread, title=mark, body=mark)
    for thread in (goal.thread, assistant_of(user).thread):
        ThreadMessageFactory(thread=thread, run=run, content=mark)
    ThreadMessageFactory(thread=goal.thread, run=run, content=mark, source="error")
    AgentActionFactory(run=run, summary=mark, arguments={"title": mark})
    session = AgentHistoryFactory(thread=goal.thread, summary=mark, text=mark)
    unknown = AgentActionFactory(run=run, summary=mark, status="unknown")
    approval = ApprovalFactory(action__run=run, action__summary=mark, reason=mark)
    price = ModelPriceFactory(user=user, model=mark)
    ids = {"price_id": price.pk, "goal_id": goal.pk, "run_id": run.pk, "note_id": note.pk, "session_id": session.pk}
    attachment = AttachmentFactory(message=ThreadMessage.objects.filter(thread=goal.thread).first(), name=mark)
    ids["attachment_id"] = attachment.pk
    ids["path"] = f"{mark}.txt"
    files.write(goal.thread_id, ids["path"], iter([mark.encode()]), files.Hand(Writer.USER))
    ids["server_id"] = McpServer.objects.create(user=user, name="shop", url=f"http://127.0.0.1/{mark}", error=mark).pk
    ids["budget_id"] = BudgetFactory(user=user, thread=goal.thread).pk
    part, assessment = PartFactory(thread=goal.thread, name=mark), AssessmentFactory(thread=goal.thread, text=mark)
    ids |= {"part_id": part.pk, "assessment_id": assessment.pk}
    ids["learning_id"] = LearningFactory(thread=goal.thread, text=mark).pk
    learned = {"kind": "learning", "id": str(ids["learning_id"]), "name": mark, "before": None, "after": {"text": mark}}
    AgentActionFactory(run=run, summary=mark, undo={"changes": [learned]})
    ids["message_id"] = ThreadMessage.objects.get(thread=goal.thread, source="user").pk
    for thread in (goal.thread, assistant_of(user).thread):
        make_plan(thread, [PlannedTask(title=mark, subtasks=[PlannedStep(title=mark)])])
    ids["schedule_id"] = schedules.add(goal.thread, "every day 8:00", mark).pk
    measuring.set_target(goal.thread, mark, 5, date(2099, 1, 1))
    ids["measurement_id"] = measuring.measure(goal.thread, 3, note=mark).pk
    ids["item_id"] = FeedItemFactory(thread=goal.thread, title=mark).pk
    ids["notice_id"] = ReceiptFactory(notice__thread=goal.thread, notice__said=mark, whom=mark).notice_id
    ids["device_id"] = PushDeviceFactory(user=user, name=mark).pk
    keep_version(note)
    ids["version_id"] = NoteVersion.objects.get(note=note).pk
    document = write_document(place(user.pk, goal.thread_id, "MEMORY"), mark)
    write_document(place(user.pk, goal.thread_id, "USER"), mark)
    keep_document_version(document)
    ids |= {"document_id": document.pk, "document_version_id": DocumentVersion.objects.get(document=document).pk}
    ids["skill_id"] = add_skill(user, f"---\nname: theirs\ndescription: {mark}\n---\n{mark}".encode()).pk
    skill = Skill.objects.get(pk=ids["skill_id"])
    change_skill(skill, f"{skill.text}{mark}")
    ids["skill_version_id"] = skill.versions.get().pk
    ids["proposal_id"] = ProposalFactory(thread=goal.thread, text=mark).pk
    return Person(user, ids | {"approval_id": approval.pk, "action_id": unknown.pk})


def make_undoable(owner: Person) -> None:
    """The one action of the matrix has an unknown outcome; let it be that of the note."""
    after = {"title": owner.canary, "body": owner.canary}
    created = {"kind": "note", "id": str(owner.ids["note_id"]), "name": "x", "before": None, "after": after}
    with rewriting():
        AgentAction.objects.filter(pk=owner.ids["action_id"]).update(status="done", undo={"changes": [created]})


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bell, "ring", lambda run_id: None)
    monkeypatch.setattr(bell, "ask_for_restart", lambda *_: True)


def routes() -> list[URLPattern]:
    (api,) = [found for found in get_resolver().url_patterns if str(found.pattern) == "api/v1/"]
    assert isinstance(api, URLResolver)
    return [route for route in api.url_patterns if isinstance(route, URLPattern) and route.name != "nowhere"]


def view_of(route: URLPattern) -> Any:
    return getattr(route.callback, "cls", None)


def own_routes() -> list[URLPattern]:
    return [route for route in routes() if view_of(route).access is Access.OWN]


def names_of(route: URLPattern) -> list[str]:
    return list(route.pattern.converters)


def address(route: URLPattern, ids: dict[str, Any]) -> str:
    return reverse(f"api:{route.name}", kwargs={name: ids[name] for name in names_of(route)})


def mixtures(route: URLPattern, caller: Person, other: Person) -> Iterator[dict[str, Any]]:
    """Every way to fill the id positions of a route with at least one id that is not the caller's."""
    names = names_of(route)
    for choice in itertools.product(("own", "other", "nobody", "wrong kind"), repeat=len(names)):
        if set(choice) - {"own"}:
            yield {name: _filled(name, how, caller, other) for name, how in zip(names, choice, strict=True)}


def _filled(name: str, how: str, caller: Person, other: Person) -> Any:
    if how == "wrong kind":
        return next(found for kind, found in other.ids.items() if kind != name)
    return {"own": caller.ids[name], "other": other.ids[name], "nobody": nobody()}[how]


def ask(caller: Person | None, route: URLPattern, method: str, ids: dict[str, Any]) -> Any:
    headers = bearer(caller.user) if caller else {}
    body = BODIES.get((str(route.name), method), {}) | seen(route, ids)
    send = getattr(Client(), method.lower())
    arguments = {} if method == "GET" else {"data": body, "content_type": "application/json"}
    if (route.name, method) == ("goal_files", "POST"):
        arguments = {"data": {"file": SimpleUploadedFile("mine.txt", b"mine")}}
    return send(address(route, ids), headers=headers, **arguments)


def seen(route: URLPattern, ids: dict[str, Any]) -> dict[str, Any]:
    """What a decision must say of the thing that it is about, whosever that is."""
    if str(route.name).endswith("_relied_on"):
        key, name = {"message_relied_on": ("learning", "learning_id")}.get(
            str(route.name), (str(route.name).removesuffix("_relied_on"), names_of(route)[0])
        )
        return {"keys": [f"{key}:{ids.get(name)}"]}
    model, name = {"part_confirm": (Part, "part_id"), "proposal_decide": (Proposal, "proposal_id")}.get(
        str(route.name), (None, "")
    )
    record = model._default_manager.filter(pk=ids[name]).first() if model else None
    return {"shown": digest_of(record)} if isinstance(record, Part | Proposal) else {}


def belongings(person: Person) -> dict[str, list[dict[str, Any]]]:
    """All rows of a person. Devices are not among them: each question above makes one."""
    threads = Thread.objects.filter(user=person.user)
    rows = {}
    for table in TABLES:
        fields = {field.name for field in table._meta.get_fields()}
        wanted = {"user": person.user} if "user" in fields else {"thread__in": threads}
        rows[table.__name__] = list(table._default_manager.filter(**wanted).order_by("pk").values())
    written = [path for thread in threads for path in Folder(thread.pk).files.rglob("*")]
    rows["files"] = [{str(path): path.read_text()} for path in written]
    return rows


def content_of(answer: Any) -> str:
    return "" if answer.streaming else answer.content.decode(errors="replace")


def test_every_route_declares_who_may_use_it() -> None:
    undeclared = [route.name for route in routes() if not isinstance(view_of(route).access, Access)]
    assert undeclared == []
    assert len(own_routes()) >= 13


def test_the_ids_of_others_are_ids_of_nothing() -> None:
    alice, bob = person(), person()
    before = belongings(bob)
    asked, leaks = 0, []
    for route in own_routes():
        for method, ids in itertools.product(METHODS, mixtures(route, alice, bob)):
            answer = ask(alice, route, method, ids)
            asked += 1
            if answer.status_code not in (404, 405) or bob.canary in content_of(answer):
                leaks.append((route.name, method, answer.status_code))
    print(f"{len(own_routes())} routes × {len(METHODS)} methods × positions of ids: {asked} asked, {len(leaks)} leaks")
    assert leaks == []
    assert asked > 100
    assert belongings(bob) == before


def test_lists_and_single_places_hold_only_what_is_ones_own() -> None:
    alice, bob = person(), person()
    before = belongings(bob)
    for route, method in itertools.product([r for r in own_routes() if r.name != "logout"], METHODS):
        if names_of(route) and method != "GET":
            continue
        answer = ask(alice, route, method, alice.ids)
        assert answer.status_code in (200, 201, 202, 405), (route.name, method)
        assert bob.canary not in content_of(answer), (route.name, method)
    assert belongings(bob) == before


def test_filters_and_cursors_do_not_lead_to_others() -> None:
    alice, bob = person(), person()
    headers = bearer(alice.user)
    foreign = ThreadMessage.objects.filter(thread__user=bob.user)
    queries = [
        ("api:runs", {"goal": str(bob.ids["goal_id"])}),
        *(("api:agent_messages", {"after": str(message.pk)}) for message in foreign),
    ]
    for name, query in queries:
        answer = Client().get(reverse(name), query, headers=headers)
        assert bob.canary not in answer.content.decode()
        assert answer.status_code == 400 or answer.json()["results"] == []


def test_the_owner_is_let_in_by_the_same_matrix() -> None:
    """Without this the matrix would also pass when every address answered 404."""
    for route in own_routes():
        alice = person()
        if route.name == "action_undo":
            make_undoable(alice)
        allowed = [m for m in METHODS if ask(alice, route, m, alice.ids).status_code in (200, 201, 202, 204)]
        offered = {m.upper() for m in METHODS if hasattr(view_of(route), m.lower())}
        assert set(allowed) | {"DELETE"} >= offered, route.name


def test_without_a_token_nothing_opens() -> None:
    alice = person()
    for route, method in itertools.product(own_routes(), METHODS):
        answer = ask(None, route, method, alice.ids)
        assert answer.status_code == 401, (route.name, method)
        assert CANARY not in content_of(answer)
    assert not DeviceToken.objects.exists()
