"""T19: nobody rewrites or thins out the record of what agents did, by the ORM or by a statement of their own."""

import itertools
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import Field
from django.utils import timezone

from agents.stopping import delete_thread
from memory.models import AgentRun, Thread
from tests.factories import AgentActionFactory, AgentRunFactory, ApprovalFactory, ThreadFactory, UserFactory
from tools.models import ActionStatus, AgentAction, Resolution

pytestmark = pytest.mark.django_db(transaction=True)

UNDO: dict[str, Any] = {"changes": [], "lasting": []}
FREE = {"undone"}
FIELDS = [field for field in AgentAction._meta.fields if field.name not in FREE]
OPEN = {"intent", "proposed", "started"}
FINAL = {"done", "error", "denied", "cancelled"}
# As the engine and the decisions of people use them.
MOVES = {
    "intent": {"proposed", "started", "error", "denied", "cancelled"},
    "proposed": {"started", "error", "denied", "cancelled"},
    "started": {"done", "error", "denied", "cancelled", "unknown"},
    "unknown": set[str](),
    **{status: set[str]() for status in FINAL},
}


def ended(status: str = "done", **fields: Any) -> AgentAction:
    at = timezone.now()
    action: AgentAction = AgentActionFactory(
        status=status, output="out", summary="sum", undo=UNDO, fence=3, started_at=at, finished_at=at, **fields
    )
    return action


def other(field: Field[Any, Any], action: AgentAction) -> Any:
    """Another value that the column could hold."""
    match field.get_internal_type():
        case "ForeignKey":
            made = {"run": AgentRunFactory, "thread": ThreadFactory, "user": UserFactory, "resolved_by": UserFactory}
            return made.get(field.name, AgentActionFactory)()
        case "UUIDField":
            return AgentActionFactory.build(run=None, thread=None, user=None).pk
        case "PositiveIntegerField" | "PositiveBigIntegerField":
            return getattr(action, field.name) + 1
        case "JSONField":
            return {"something": "else"}
        case "DateTimeField":
            return timezone.now()
        case _:
            return "error" if field.name == "status" else "happened" if field.name == "resolution" else "forged"


def stored(action: AgentAction) -> dict[str, Any]:
    return {**AgentAction.objects.filter(pk=action.pk).values().get()}


def by_orm(action: AgentAction, field: Field[Any, Any], value: Any) -> None:
    AgentAction.objects.filter(pk=action.pk).update(**{field.name: value})


def by_hand(action: AgentAction, field: Field[Any, Any], value: Any) -> None:
    with connection.cursor() as cursor:
        sql = f"UPDATE agent_actions SET {field.column} = %s WHERE id = %s"
        cursor.execute(sql, [field.get_db_prep_save(getattr(value, "pk", value), connection), action.pk])


def by_saving(action: AgentAction, field: Field[Any, Any], value: Any) -> None:
    changed = AgentAction.objects.get(pk=action.pk)
    setattr(changed, field.name, value)
    changed.save(force_update=True)


@pytest.mark.parametrize("write", [by_orm, by_hand, by_saving])
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: str(field.name))
def test_t19_no_column_of_what_is_over_can_be_changed(
    field: Field[Any, Any], write: Callable[[AgentAction, Field[Any, Any], Any], None]
) -> None:
    if write is by_saving and field.primary_key:
        pytest.skip("another id is another row")
    action = ended()
    before, value = stored(action), other(field, action)
    with pytest.raises(IntegrityError, match="agent_actions"):
        write(action, field, value)
    assert stored(action) == before


@pytest.mark.parametrize("status", sorted(OPEN))
@pytest.mark.parametrize(
    "name",
    [
        *("id", "run", "thread", "user", "step", "position", "call_id", "tool", "effect", "risk", "reversal"),
        *("arguments", "created_at", "repeats"),
    ],
)
def test_t19_what_was_called_never_changes_while_it_is_open_either(name: str, status: str) -> None:
    action: AgentAction = AgentActionFactory(status=status)
    field = next(field for field in FIELDS if field.name == name)
    with pytest.raises(IntegrityError, match="what was called never changes"):
        by_orm(action, field, other(field, action))


def test_t19_every_column_is_tried() -> None:
    assert {field.name for field in AgentAction._meta.fields} == {field.name for field in FIELDS} | FREE


def test_t19_a_status_moves_on_as_the_engine_moves_it_and_no_other_way() -> None:
    moved = set()
    for old, new in itertools.permutations(ActionStatus.values, 2):
        action = AgentActionFactory(status=old)
        try:
            AgentAction.objects.filter(pk=action.pk).update(status=new)
        except IntegrityError:
            continue
        moved.add((old, new))
    assert moved == {(old, new) for old, news in MOVES.items() for new in news}


def test_t19_a_call_starts_and_ends_once() -> None:
    action = AgentActionFactory(status="intent", fence=1)
    mine, at = AgentAction.objects.filter(pk=action.pk), timezone.now()
    for change in ({"started_at": at}, {"fence": 2}, {"finished_at": at}, {"status": "proposed", "finished_at": at}):
        with pytest.raises(IntegrityError):
            mine.update(**change)
    mine.update(status="started", fence=2, started_at=at)
    for change in ({"started_at": timezone.now()}, {"fence": 3}):
        with pytest.raises(IntegrityError):
            mine.update(**change)
    mine.update(status="done", output="out", undo=UNDO, finished_at=at)
    assert stored(action)["status"] == "done"


def test_t19_an_unknown_outcome_is_settled_once() -> None:
    user, at = UserFactory(), timezone.now()
    action = ended("unknown", effect="verifiable", error="It broke off.")
    mine = AgentAction.objects.filter(pk=action.pk)
    mine.update(error="Nobody answers.")
    for status in ("done", "error"):
        with pytest.raises(IntegrityError, match="only moves on"):
            mine.update(status=status)
    mine.update(resolution=Resolution.CHECKED, resolved_by=user, resolved_at=at)
    others: list[dict[str, Any]] = [{"resolution": "happened"}, {"resolution": ""}, {"resolved_at": None}]
    for change in (*others, {"resolved_by": UserFactory()}):
        with pytest.raises(IntegrityError, match="settled once"):
            mine.update(**change)
    with pytest.raises(IntegrityError, match="stays as it was recorded"):
        mine.update(error="Something else.")
    mine.update(status="done", error="", output="It was sent.", summary="to Ann")
    with pytest.raises(IntegrityError, match="only moves on"):
        mine.update(status="unknown")
    user.delete()
    assert AgentAction.objects.get(pk=action.pk).resolved_by is None


def test_t19_what_is_to_run_again_never_becomes_done_itself() -> None:
    action = ended("unknown")
    mine = AgentAction.objects.filter(pk=action.pk)
    mine.update(resolution=Resolution.RUN_AGAIN, resolved_by=action.user, resolved_at=timezone.now())
    with pytest.raises(IntegrityError):
        mine.update(status="done")


def test_t19_only_what_was_done_is_marked_as_undone_and_an_undo_keeps_what_it_undid() -> None:
    action, failed = ended(), ended("error")
    AgentAction.objects.filter(pk=action.pk).update(undone=True)
    AgentAction.objects.filter(pk=action.pk).update(undone=False)
    with pytest.raises(IntegrityError):
        AgentAction.objects.filter(pk=failed.pk).update(undone=True)
    undo = AgentActionFactory(run=action.run, status="started", tool="undo_action")
    AgentAction.objects.filter(pk=undo.pk).update(undoes=action)
    for change in ({"undoes": failed}, {"undoes": None}):
        with pytest.raises(IntegrityError, match="an undo is of one action"):
            AgentAction.objects.filter(pk=undo.pk).update(**change)


def test_t19_an_action_is_not_deleted_by_itself() -> None:
    action = ended()
    ApprovalFactory(action=action)
    AgentActionFactory(run=action.run, undoes=action, repeats=action)
    attempts: list[Callable[[], object]] = [
        action.delete,
        AgentAction.objects.all().delete,
        AgentRun.objects.get(actions=action).delete,
    ]
    before = list(AgentAction.objects.order_by("pk").values())
    for attempt in attempts:
        with pytest.raises(IntegrityError, match="deleted with its thread"):
            attempt()
    for sql in ("DELETE FROM tools_approval; DELETE FROM agent_actions", "TRUNCATE agent_actions CASCADE"):
        with pytest.raises(IntegrityError, match="deleted with"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    assert list(AgentAction.objects.order_by("pk").values()) == before


def test_t19_an_action_does_not_come_back_as_another_in_one_transaction() -> None:
    action = ended()
    row = stored(action)
    with pytest.raises(IntegrityError, match="deleted with its thread"), transaction.atomic():
        AgentAction.objects.filter(pk=action.pk).delete()
        AgentAction.objects.create(**row | {"output": "forged"})
    assert stored(action) == row


def test_actions_go_with_their_thread_and_their_user() -> None:
    first, second, kept = ended(), ended(), ended()
    delete_thread(first.thread)
    User.objects.get(pk=second.user_id).delete()
    assert list(AgentAction.objects.all()) == [kept]
    assert not Thread.objects.filter(pk__in=[first.thread_id, second.thread_id]).exists()


def test_a_whole_database_can_be_emptied() -> None:
    ended()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE memory_thread CASCADE")
    assert not AgentAction.objects.exists()


def test_an_action_takes_its_time_from_the_database() -> None:
    """Saving all columns again, as the ORM does, changes none."""
    action: AgentAction = AgentActionFactory(status="started")
    assert isinstance(AgentAction.objects.get(pk=action.pk).created_at, datetime)
    action.status = ActionStatus.DONE
    action.save()
    assert stored(action)["status"] == "done"
