"""What is looked for in what was done: on the page, in a file, over the API (mission D7, threat T1)."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from goals.activity import below
from goals.models import Goal
from memory.models import AgentRun
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    AgentTaskFactory,
    ApprovalFactory,
    GoalFactory,
    UserFactory,
    bearer,
)
from tests.rewriting import rewriting
from tools import export, registry, sought
from tools.models import ActionStatus, AgentAction, ApprovalState
from tools.sought import Kind, Sought, State, Who

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = ["shoes", "Boots", "50%", "a_b", "back\\slash", "“quoted”"]
TOOLS = [("create_note", "local"), ("read_note", "pure"), ("send_message", "idempotent"), ("gone", "verifiable")]
CHANGE: dict[str, Any] = {"kind": "note", "id": "1", "name": "x", "before": None, "after": {}}
BEGIN = datetime.fromisoformat("2026-03-01T00:00:00+00:00")


def deeds(user: User, dice: Random, count: int) -> None:
    """Actions of all kinds, in two goals and by a helper; a few share their moment."""
    goals = [GoalFactory.create(user=user) for _ in range(2)]
    helper = AgentTaskFactory.create(user=user, parent=goals[0].thread)
    runs = [AgentRunFactory.create(thread=thread) for thread in (goals[0].thread, goals[1].thread, helper.thread)]
    for _ in range(count):
        status, (tool, effect), run = dice.choice(ActionStatus.values), dice.choice(TOOLS), dice.choice(runs)
        done, by_person = status == "done", dice.random() < 0.2
        fields: dict[str, Any] = {name: dice.choice(["", *WORDS]) for name in ("summary", "output", "error")}
        fields |= {"arguments": {"title": dice.choice(WORDS)}, "undo": dice.choice([None, {"changes": [CHANGE]}])}
        fields |= {"undone": done and dice.random() < 0.4, "created_at": BEGIN + timedelta(hours=dice.randrange(60))}
        fields |= {"resolution": dice.choice(["", "run_again"])} if status == "unknown" else {}
        fields |= {} if status in ("intent", "proposed", "started") else {"finished_at": fields["created_at"]}
        owner = {"run": None, "thread": run.thread, "user": user} if by_person else {"run": run}
        action = AgentActionFactory.create(status=status, tool=tool, effect=effect, **owner, **fields)
        if status in ("intent", "proposed") and dice.random() < 0.5:
            ApprovalFactory(action=action, state=dice.choice(["requested", "approved"]))


def fits(asked: Sought, goal: Goal | None, action: AgentAction) -> bool:
    """The same in plain Python."""
    task = getattr(action.thread, "agents_agenttask", None)
    place = task.parent_id if task else action.thread_id
    texts = [action.summary, action.error, action.output, action.arguments["title"]]
    return all(
        [
            goal is None or place == goal.thread_id,
            not asked.tool or action.tool == asked.tool,
            asked.tool or _is_of_kind(asked.kind, action),
            asked.who is None or (action.run_id is None) == (asked.who is Who.PERSON),
            asked.state is None or _stands(asked.state, action),
            asked.since is None or action.created_at >= asked.since,
            asked.until is None or action.created_at < asked.until,
            *(any(word.lower() in text.lower() for text in texts) for word in asked.text.split()),
        ]
    )


def _is_of_kind(kind: Kind, action: AgentAction) -> bool:
    tool, reads = registry.find(action.tool), action.effect == "pure"
    if kind is Kind.EVERYTHING:
        return True
    return not (tool and tool.speaks) and reads == (kind is Kind.READING)


def _stands(state: State, action: AgentAction) -> bool:
    approval = getattr(action, "approval", None)
    asked = action.status in ("intent", "proposed") and approval and approval.state == ApprovalState.REQUESTED
    return {
        State.DONE: action.status == "done" and not action.undone,
        State.UNDOABLE: action.status == "done" and not action.undone and bool(action.undo),
        State.UNDONE: action.undone,
        State.FAILED: action.status in ("error", "denied"),
        State.LEFT: action.status == "cancelled",
        State.WAITING: bool(asked) or (action.status == "unknown" and not action.resolution),
        State.RUNNING: action.status == "started",
        State.UNKNOWN: action.status == "unknown",
    }[state]


MOMENTS = st.none() | st.integers(0, 60).map(lambda hours: BEGIN + timedelta(hours=hours))
SOUGHT = st.builds(
    Sought,
    text=st.lists(st.sampled_from(["shoes", "boot", "50%", "a_b", "\\", "“quoted", "nowhere"]), max_size=2).map(
        " ".join
    ),
    tool=st.sampled_from(["", "", *(name for name, _ in TOOLS)]),
    who=st.none() | st.sampled_from(Who),
    kind=st.sampled_from(Kind),
    state=st.none() | st.sampled_from(State),
    since=MOMENTS,
    until=MOMENTS,
)


@hypothesis_settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9), many=st.lists(SOUGHT, min_size=10, max_size=10))
def test_filters_find_what_a_plain_reckoning_finds(seed: int, many: list[Sought]) -> None:
    user, dice = UserFactory.create(), Random(seed)
    deeds(user, dice, 30)
    deeds(UserFactory.create(), dice, 3)
    every = list(AgentAction.objects.filter(user=user).select_related("thread__agents_agenttask", "approval"))
    for asked, goal in product(many, [None, *Goal.objects.filter(user=user)]):
        mine = AgentAction.objects.for_user(user)
        found = asked.among(mine.filter(below(goal.thread_id)) if goal else mine)
        expected = {action.pk for action in every if fits(asked, goal, action)}
        assert set(found.values_list("pk", flat=True)) == expected


def pages(client: Client, address: str) -> Iterator[dict[str, Any]]:
    """The rows of all pages of a list of the API."""
    following: str | None = address
    while following:
        answer = client.get(following)
        assert answer.status_code == 200
        yield from answer.json()["results"]
        following = answer.json()["next"]


def test_the_api_and_the_file_list_what_the_page_lists_once_each_and_in_order(user: User, client: Client) -> None:
    deeds(user, Random(7), 40)
    expected = [
        str(action.pk)
        for action in Sought(kind=Kind.EVERYTHING).among(
            AgentAction.objects.order_by("-created_at", "-step", "-position", "-id")
        )
    ]
    assert len(expected) == 40
    device = Client(headers=bearer(user))
    rows = list(pages(device, "/api/v1/actions?kind=everything&limit=7"))
    assert [row["id"] for row in rows] == expected
    assert {row["goal"] for row in rows} == {str(goal.pk) for goal in Goal.objects.all()}, "a helper's is its goal's"
    undoable = {row["id"] for row in rows if row["undoable"]}
    assert undoable == {row["id"] for row in pages(device, "/api/v1/actions?kind=everything&state=undoable")}
    assert [row["id"] for row in file_of(client, "json", "kind=everything")] == expected
    page = client.get("/activity/?kind=everything").content.decode()
    places = [page.index(f'id="action-{each}"') for each in expected]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "query",
    ["goal=x", "who=me", "kind=x", "state=x", "since=x", "until=yesterday", "cursor=x", "limit=0", "q=" + "w" * 300],
)
def test_the_api_says_what_it_does_not_understand(user: User, query: str) -> None:
    answer = Client(headers=bearer(user)).get(f"/api/v1/actions?{query}")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [query.split("=")[0]])


def file_of(client: Client, form: str, query: str = "") -> list[dict[str, Any]]:
    answer = client.get(f"/activity/activity.{form}?{query}")
    assert (answer.status_code, answer["Cache-Control"].count("no-store")) == (200, 1)
    assert answer["Content-Disposition"].endswith(f'.{form}"')
    text = streamed(answer)
    return json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))


def streamed(answer: Any) -> str:
    assert isinstance(answer, StreamingHttpResponse)

    async def read() -> bytes:
        return b"".join([piece async for piece in answer])

    return async_to_sync(read)().decode()


def test_a_file_has_every_row_whatever_was_written_and_runs_no_formula(
    user: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "AT_ONCE", 2)
    run = AgentRunFactory.create(thread=GoalFactory.create(user=user, title="=HYPERLINK(1)").thread)
    odd = ['=cmd|" /C calc"!A0', "+1", "-1", "@SUM(1)", "\t=1", "\uff1d1", 'line\nbreak, "quoted"; \u202e', ""]
    for text in odd:
        AgentActionFactory(run=run, summary=text, output=text, error=text, arguments={"title": text}, tool="+x")
    rows = file_of(client, "csv")
    assert [row["output"].removeprefix("'") for row in reversed(rows)] == odd
    for cell in (cell for row in rows for cell in row.values()):
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d"))
    as_json = file_of(client, "json")
    assert [row["arguments"]["title"] for row in reversed(as_json)] == odd
    assert ({row["agent"] for row in as_json}, {row["by"] for row in as_json}) == ({"=HYPERLINK(1)"}, {"agent"})
    assert file_of(client, "json", "q=nowhere") == file_of(client, "csv", "q=nowhere") == []


def test_a_page_and_a_piece_of_a_file_cost_the_same_however_many_there_are(user: User, client: Client) -> None:
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    deeds(user, Random(1), 5)
    queries("/activity/?kind=everything")
    few = queries("/activity/?kind=everything")
    deeds(user, Random(2), 40)
    assert queries("/activity/?kind=everything") == few


def test_words_are_looked_for_as_far_back_as_is_said(
    user: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sought, "LOOKED_THROUGH", 3)
    run: AgentRun = AgentRunFactory.create(thread=GoalFactory.create(user=user).thread)
    for day in range(6):
        action = AgentActionFactory.create(run=run, summary=f"shoes of day {day}")
        with rewriting():
            AgentAction.objects.filter(pk=action.pk).update(created_at=BEGIN + timedelta(days=day))
    page = client.get("/activity/?q=shoes").content.decode()
    assert [f"day {day}" in page for day in range(6)] == [False] * 3 + [True] * 3
    assert "back to 4 March 2026" in page
    earlier = client.get("/activity/?q=shoes&until=2026-03-03").content.decode()
    assert [f"day {day}" in earlier for day in range(6)] == [True] * 3 + [False] * 3
    assert "The words were looked for" not in earlier


def test_an_undo_leads_back_to_the_page_as_it_was_filtered(user: User, client: Client) -> None:
    run = AgentRunFactory.create(thread=GoalFactory.create(user=user).thread)
    action = AgentActionFactory.create(run=run)
    answer = client.post(f"/actions/{action.pk}/undo", {"next": "/activity/?state=done&q=shoes"})
    assert answer["Location"] == "/activity/?state=done&q=shoes"


def test_t1_nothing_of_others_is_found_in_any_way(client: Client, user: User) -> None:
    """Two users: the page, every filter, the files, the API, and each with the ids and cursors of the other."""
    stranger = UserFactory.create()
    goal = GoalFactory.create(user=stranger, title="Canary goal")
    run = AgentRunFactory.create(thread=goal.thread)
    undo = {"changes": [CHANGE]}
    canary = {"summary": "canary", "output": "canary", "undo": undo, "finished_at": timezone.now()}
    theirs = AgentActionFactory.create(run=run, arguments={"title": "canary"}, **canary)
    AgentActionFactory(run=None, thread=goal.thread, user=stranger, **canary)
    ApprovalFactory(action__run=run, action__summary="canary")
    AgentActionFactory(run=AgentRunFactory.create(thread=GoalFactory.create(user=user).thread), summary="mine")
    filters = ["", f"goal={goal.pk}", "q=anar", "kind=everything", f"tool={theirs.tool}", f"after={_cursor(stranger)}"]
    filters += [f"state={state}" for state in State] + [f"who={who}" for who in Who]
    device, leaks = Client(headers=bearer(user)), []
    for query in filters:
        seen = [client.get(f"/activity/?{query}").content.decode()]
        seen += [streamed(client.get(f"/activity/activity.{form}?{query}")) for form in ("csv", "json")]
        seen += [device.get(f"/api/v1/actions?{query.replace('after=', 'cursor=')}").content.decode()]
        leaks += [query for text in seen if "canary" in text.lower()]
    assert leaks == []
    for path in (
        f"/activity/undo/?run={run.pk}",
        f"/activity/undo/?thread={goal.thread_id}&since=2020-01-01T00:00:00Z",
    ):
        assert client.get(path).status_code == client.post(path).status_code == 404
    everything = "/activity/undo/?since=2020-01-01T00:00:00Z"
    assert "anary" not in client.get(everything).content.decode()
    client.post(everything)
    assert not AgentAction.objects.filter(user=stranger, undone=True).exists()


def _cursor(user: User) -> str:
    """Of a page of somebody else."""
    device = Client(headers=bearer(user))
    following: str = device.get("/api/v1/actions?kind=everything&limit=1").json()["next"]
    return following.partition("cursor=")[2].partition("&")[0]


def test_nobody_reads_it_without_being_signed_in() -> None:
    for path in ("", "activity.csv", "activity.json", "undo/"):
        assert Client().get(f"/activity/{path}").status_code == 302
    assert Client().get("/api/v1/actions").status_code == 401


def test_a_file_is_sent_while_it_is_read(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through ASGI, as on the server: piece after piece, each with one query."""
    monkeypatch.setattr(export, "AT_ONCE", 2)
    run = AgentRunFactory.create(thread=GoalFactory.create(user=user).thread)
    for number in range(5):
        AgentActionFactory(run=run, summary=f"Number {number}")
    browser = AsyncClient()
    browser.force_login(user)

    async def read() -> list[bytes]:
        answer: Any = await browser.get("/activity/activity.csv")
        return [piece async for piece in answer]

    pieces = async_to_sync(read)()
    assert [piece.count(b"Number") for piece in pieces] == [0, 2, 2, 1]
