"""Plans: made by an agent for itself, and closed step by step with proof (mission A7, A8)."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models.functions import Now
from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents.evidence import Claim, NotProven, Proof, proofs
from agents.plan_item import PlanItem, PlanStatus
from agents.planned import current_plan, keys_of, marked
from agents.refusals import Refused
from memory.models import Thread
from memory.text import clean, clip, visible

MOST_TASKS, MOST_SUBTASKS = 5, 12


class PlannedStep(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1, max_length=PlanItem.TITLE_LENGTH, description="What is done, concretely.")
    tool: str = Field(default="", max_length=100, description="The name of the tool that does it.")

    @model_validator(mode="before")
    @classmethod
    def from_words(cls, value: Any) -> Any:
        """Of a step that is words alone, as weak models write them, these are the title."""
        return {"title": value} if isinstance(value, str) else value


class PlannedTask(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1, max_length=PlanItem.TITLE_LENGTH, description="What is to come of it.")
    subtasks: list[PlannedStep] = Field(
        min_length=1, max_length=MOST_SUBTASKS, description="Concrete steps, in order; each needs a tool."
    )


def make_plan(thread: Thread, tasks: Sequence[PlannedTask]) -> list[PlanItem]:
    """Let a plan take the place of the one before, of which what is closed stays on record. A subtask that was proven
    there and has the same words here is done here, too.

    Raises:
        Refused: a title is blank.
    """
    items = list(_items(thread, tasks))
    if not all(item.title for item in items):
        raise Refused("blank", "A task or a subtask has no words. Nothing was planned.")
    _carry_over(thread, items)
    PlanItem.objects.filter(thread=thread).current().update(status=PlanStatus.DROPPED)
    return PlanItem.objects.bulk_create(items)


def _items(thread: Thread, tasks: Sequence[PlannedTask]) -> Iterator[PlanItem]:
    position = 0
    for n, task in enumerate(tasks, 1):
        parent = None
        for m, title in enumerate([task.title, *(step.title for step in task.subtasks)]):
            item = PlanItem(
                user_id=thread.user_id,
                thread=thread,
                parent=parent,
                position=position,
                number=f"{n}.{m}" if m else str(n),
                title=clip(visible(title), PlanItem.TITLE_LENGTH),
            )
            parent = parent or item
            position += 1
            yield item


def _carry_over(thread: Thread, items: Sequence[PlanItem]) -> None:
    """Each step that was proven counts once."""
    before = [item for branch in current_plan(thread.pk) for item in branch.subtasks]
    proven = [item for item in before if item.status == PlanStatus.DONE and not item.proof_gone]
    for item in items:
        same = next((each for each in proven if each.title.casefold() == item.title.casefold()), None)
        if item.parent is not None and same is not None:
            proven.remove(same)
            for name in ("status", "reason", "evidence", "closed_at"):
                setattr(item, name, getattr(same, name))
    for task in items:
        below = [item for item in items if item.parent is task]
        if below and all(item.status == PlanStatus.DONE for item in below):
            task.status, task.closed_at = PlanStatus.DONE, max(item.closed_at for item in below if item.closed_at)


def close(thread: Thread, number: str, *, success: bool, reason: str, claims: Sequence[Claim]) -> PlanItem:
    """Close a subtask of the plan that holds, and its task with the last of them. One whose proof was taken back since
    is closed anew. Must be called in a transaction.

    Args:
        reason: what came of it, or why it cannot be done; for people.
        claims: what proves it; a failure needs none.

    Raises:
        Refused: there is no such subtask, it is closed, or what is claimed is not proven; it stays open.
    """
    item = _open_subtask(thread, number)
    reason = visible(clean(reason)).strip()
    if not reason:
        raise Refused("blank", "Say what came of it, or why it cannot be done.")
    shown = _proven(item, claims) if success else []
    status = PlanStatus.DONE if success else PlanStatus.FAILED
    evidence = [{"key": proof.key, "words": proof.words} for proof in shown]
    _save(item, status, reason, evidence)
    _close_parent(item)
    return item


def _open_subtask(thread: Thread, number: str) -> PlanItem:
    subtasks = PlanItem.objects.select_for_update(no_key=True).filter(thread=thread, parent__isnull=False).current()
    items = marked(subtasks)
    item = next((each for each in items if each.number == number.strip()), None)
    if item is None:
        known = ", ".join(each.number for each in items if each.is_open)
        raise Refused("no_subtask", f"There is no subtask {clip(number, 20)!r}. Open ones: {known or 'none'}.")
    if not item.is_open:
        raise Refused("closed", f"Subtask {item.number} is {item.status} already.")
    return item


def _proven(item: PlanItem, claims: Sequence[Claim]) -> list[Proof]:
    """What proves the item done. One deed, however large, proves one subtask."""
    try:
        shown = proofs(item, claims)
    except NotProven as problem:
        raise Refused("not_proven", f"Subtask {item.number} stays open. {problem}") from problem
    others = PlanItem.objects.filter(thread=item.thread_id).current().filter(status=PlanStatus.DONE).exclude(pk=item.pk)
    used = {key: other.number for other in others for key in keys_of(other)}
    for proof in shown:
        if proof.key in used:
            raise Refused(
                "not_proven",
                f"Subtask {item.number} stays open. {proof.words!r} has proved subtask {used[proof.key]} already; "
                "name only what was done for this one.",
            )
    return shown


def _save(item: PlanItem, status: PlanStatus, reason: str, evidence: list[dict[str, str]]) -> None:
    item.status, item.reason, item.evidence, item.proof_gone = status, reason, evidence, False
    PlanItem.objects.filter(pk=item.pk).update(status=status, reason=reason, evidence=evidence, closed_at=Now())


def _close_parent(item: PlanItem) -> None:
    assert item.parent is not None
    states = set(PlanItem.objects.filter(parent=item.parent_id).values_list("status", flat=True))
    if PlanStatus.OPEN not in states:
        status = PlanStatus.DONE if states == {PlanStatus.DONE} else PlanStatus.FAILED
        _save(item.parent, status, "", [])
