"""The plan of an agent as it stands, for its agent and for people (mission A7, A8)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID
from xml.sax.saxutils import escape

from agents.evidence import undone_keys
from agents.plan_item import PlanItem, PlanStatus


@dataclass(frozen=True, slots=True)
class Branch:
    """A task of a plan."""

    task: PlanItem
    subtasks: list[PlanItem] = field(default_factory=list)


def current_plan(thread_id: UUID) -> list[Branch]:
    """The plan that holds, each step looked at again: one whose proof was taken back since is not proven any more, nor
    is its task."""
    branches: list[Branch] = []
    for item in marked(PlanItem.objects.filter(thread=thread_id).current()):
        if item.parent_id is None:
            branches.append(Branch(item))
        else:
            branches[-1].subtasks.append(item)
    for branch in branches:
        is_done = branch.task.status == PlanStatus.DONE
        branch.task.proof_gone = is_done and any(item.proof_gone for item in branch.subtasks)
    return branches


def marked(items: Iterable[PlanItem]) -> list[PlanItem]:
    """The same items, those marked of whose proof something was taken back."""
    found = list(items)
    done = {item: keys_of(item) for item in found if item.status == PlanStatus.DONE}
    undone = undone_keys([key for keys in done.values() for key in keys])
    for item, keys in done.items():
        item.proof_gone = not undone.isdisjoint(keys)
    return found


def keys_of(item: PlanItem) -> list[str]:
    """The keys of what has proved an item (`agents.evidence.Proof`)."""
    return [each["key"] for each in item.evidence]


def outline(branches: Iterable[Branch]) -> str:
    """The plan for its agent: what is closed and how, and what comes next."""
    items = [item for branch in branches for item in (branch.task, *branch.subtasks)]
    lines = [f"{'  ' if item.parent_id else ''}{item} [{_state(item)}]" for item in items]
    following = next((item for item in items if item.parent_id and item.is_open), None)
    end = f"Next: {following}" if following else "All subtasks are closed: tell the user what came of them."
    return "\n".join([*lines, end])


def to_remind_of(thread_id: UUID) -> str:
    """The outline for the context of its agent, as long as something of the plan is open; else empty."""
    branches = current_plan(thread_id)
    is_open = any(item.is_open for branch in branches for item in branch.subtasks)
    return escape(outline(branches)) if is_open else ""


def _state(item: PlanItem) -> str:
    return "done, but what proved it was undone" if item.proof_gone else str(item.status)
