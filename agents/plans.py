"""Plans: made by an agent for itself, and closed step by step with proof (mission A7, A8)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.evidence import Claim, NotProven, Proof, proofs
from agents.plan_item import PlanItem, PlanStatus
from agents.refusals import Refused
from memory.models import Thread
from memory.text import clean, clip

MOST_TASKS, MOST_SUBTASKS = 5, 12


@dataclass(frozen=True, slots=True)
class Planned:
    """A task as the model asks for it."""

    title: str
    subtasks: Sequence[str]


def make_plan(thread: Thread, tasks: Sequence[Planned]) -> list[PlanItem]:
    """Let a plan take the place of the one before, of which what is closed stays on record.

    Raises:
        Refused: a title is blank.
    """
    items = list(_items(thread, tasks))
    if not all(item.title for item in items):
        raise Refused("blank", "A task or a subtask has no words. Nothing was planned.")
    PlanItem.objects.filter(thread=thread).current().update(status=PlanStatus.DROPPED)
    return PlanItem.objects.bulk_create(items)


def _items(thread: Thread, tasks: Sequence[Planned]) -> Iterator[PlanItem]:
    position = 0
    for n, task in enumerate(tasks, 1):
        parent = None
        for m, title in enumerate([task.title, *task.subtasks]):
            item = PlanItem(
                user_id=thread.user_id,
                thread=thread,
                parent=parent,
                position=position,
                number=f"{n}.{m}" if m else str(n),
                title=clip(clean(title), PlanItem.TITLE_LENGTH),
            )
            parent = parent or item
            position += 1
            yield item


def close(thread: Thread, number: str, *, success: bool, reason: str, claims: Sequence[Claim]) -> PlanItem:
    """Close a subtask of the plan that holds, and its task with the last of them. Must be called in a transaction.

    Args:
        reason: what came of it, or why it cannot be done; for people.
        claims: what proves it; a failure needs none.

    Raises:
        Refused: there is no such subtask, it is closed, or what is claimed is not proven; it stays open.
    """
    item = _open_subtask(thread, number)
    reason = clean(reason).strip()
    if not reason:
        raise Refused("blank", "Say what came of it, or why it cannot be done.")
    shown = _proven(item, claims) if success else []
    status = PlanStatus.DONE if success else PlanStatus.FAILED
    evidence = [{"key": proof.key, "words": proof.words} for proof in shown]
    _save(item, status, reason, evidence)
    _close_parent(item)
    return item


def _open_subtask(thread: Thread, number: str) -> PlanItem:
    items = PlanItem.objects.select_for_update(no_key=True).filter(thread=thread).current()
    item = items.filter(number=number.strip(), parent__isnull=False).first()
    if item is None:
        known = ", ".join(items.filter(parent__isnull=False, status=PlanStatus.OPEN).values_list("number", flat=True))
        raise Refused("no_subtask", f"There is no subtask {clip(number, 20)!r}. Open ones: {known or 'none'}.")
    if item.status != PlanStatus.OPEN:
        raise Refused("closed", f"Subtask {item.number} is {item.status} already.")
    return item


def _proven(item: PlanItem, claims: Sequence[Claim]) -> list[Proof]:
    """What proves the item done. One proof, however large, closes one subtask."""
    try:
        shown = proofs(item, claims)
    except NotProven as problem:
        raise Refused("not_proven", f"Subtask {item.number} stays open. {problem}") from problem
    others = PlanItem.objects.filter(thread=item.thread_id, status=PlanStatus.DONE).exclude(pk=item.pk)
    used = {each["key"] for evidence in others.values_list("evidence", flat=True) for each in evidence}
    if used.issuperset(proof.key for proof in shown):
        raise Refused(
            "not_proven",
            f"Subtask {item.number} stays open. All that was named has proved another subtask already; "
            "name what was done for this one.",
        )
    return shown


def _save(item: PlanItem, status: PlanStatus, reason: str, evidence: list[dict[str, str]]) -> None:
    item.status, item.reason, item.evidence = status, reason, evidence
    PlanItem.objects.filter(pk=item.pk).update(status=status, reason=reason, evidence=evidence, closed_at=Now())


def _close_parent(item: PlanItem) -> None:
    assert item.parent is not None
    states = set(PlanItem.objects.filter(parent=item.parent_id).values_list("status", flat=True))
    if PlanStatus.OPEN not in states:
        status = PlanStatus.DONE if states == {PlanStatus.DONE} else PlanStatus.FAILED
        _save(item.parent, status, "", [])


def current_plan(thread_id: UUID) -> QuerySet[PlanItem]:
    """The plan of an agent that holds, each task before its subtasks."""
    return PlanItem.objects.filter(thread=thread_id).current()


def told(thread_id: UUID) -> str:
    """The plan for its agent: what is closed and how, and what comes next."""
    items = list(current_plan(thread_id))
    lines = [f"{'  ' if item.parent_id else ''}{item.number} {item.title} [{item.status}]" for item in items]
    following = next((item for item in items if item.parent_id and item.status == PlanStatus.OPEN), None)
    end = f"Next: {following}" if following else "All subtasks are closed: tell the user what came of them."
    return "\n".join([*lines, end])
