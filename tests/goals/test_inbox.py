"""How the inbox speaks of what waits and of what was decided."""

import html
import re
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import UserAgent
from agents.services import assistant_of
from goals.models import Goal
from memory.models import Author, Note
from memory.notes import create_note
from tests.factories import ApprovalFactory
from tests.queries import queries
from tests.rewriting import rewriting
from tools.models import AgentAction, Approval, ApprovalState

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def note(goal: Goal) -> Note:
    return create_note(goal.thread, "Offer", "Friday, 11 December", Author.AGENT)


def asked(goal: Goal, tool: str, arguments: dict[str, object], **more: object) -> Approval:
    call = {"action__run__thread": goal.thread, "action__tool": tool, "action__arguments": arguments}
    found: Approval = ApprovalFactory.create(**call, **more)
    return found


def page(client: Client, goal: Goal, path: str = "/approvals/") -> str:
    client.force_login(goal.user)
    return html.unescape(client.get(path).content.decode())


def test_what_waits_is_called_by_the_name_of_what_it_is_about(client: Client, goal: Goal, note: Note) -> None:
    asked(goal, "delete_note", {"id": str(note.pk)})
    inbox = page(client, goal)
    assert "Delete a note “Offer”</h2>" in inbox
    assert "Friday, 11 December" in inbox
    assert "Delete a note “Offer”" in page(client, goal, "/activity/")


def test_a_command_is_shown_letter_by_letter(client: Client, goal: Goal) -> None:
    asked(goal, "run_cmd", {"command": "ls  -la", "timeout": 5})
    assert '<code class="as-written">ls  -la</code>' in page(client, goal)


def test_what_was_decided_is_told_as_done_or_as_what_would_have_been(client: Client, goal: Goal, note: Note) -> None:
    now = timezone.now()
    asked(goal, "delete_note", {"id": str(note.pk)}, state=ApprovalState.REJECTED, decided_at=now, reason="Mine")
    made = asked(goal, "create_note", {"title": "Shoes", "body": ""}, state=ApprovalState.APPROVED, decided_at=now)
    change: dict[str, object] = {"kind": "note", "id": "1", "name": "Shoes", "before": None, "after": {}}
    with rewriting():
        AgentAction.objects.filter(pk=made.pk).update(status="done", summary="Shoes", undo={"changes": [change]})
    lately = re.findall(r'<span class="grow" dir="auto">([^<]*)<small>([^,<]*)', page(client, goal))
    assert sorted(lately) == [("Created a note “Shoes”", "approved"), ("Delete a note “Offer”", "rejected: “Mine”")]


def test_home_and_what_is_new_look_up_no_more_for_many_questions(client: Client, goal: Goal) -> None:
    def look(path: str) -> None:
        assert "Delete a note" in page(client, goal, path)

    def ask(many: int) -> None:
        for n in range(many):
            note = create_note(goal.thread, f"Offer {n}", "", Author.AGENT)
            decided = {"state": ApprovalState.REJECTED, "decided_at": timezone.now()} if n % 2 else {}
            asked(goal, "delete_note", {"id": str(note.pk)}, target=note.title, **decided)

    UserAgent.objects.filter(pk=assistant_of(goal.user).pk).update(welcomed=True)
    ask(6)
    looks = [partial(look, path) for path in ("/", "/since/")]
    for first in looks:
        first()
    few = [*map(queries, looks)]
    ask(40)
    assert [*map(queries, looks)] == few
