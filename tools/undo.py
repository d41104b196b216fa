"""Taking back what calls did: what would become of each part, and the undo, which is an action itself, so that it can
be taken back in turn (mission D8, cases UND-01 and UND-02).

Lock order: thread, action, things. Of one action all is taken back or nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models.functions import Now
from pydantic import ValidationError

from memory.ids import new_id
from tools import registry
from tools.base import Effect, Reversal, Risk
from tools.changes import Change, Finding, Image, UndoRecord, Verdict, compared
from tools.models import ActionStatus, AgentAction
from tools.restoring import CannotRestore, all_restorers

NAME = "undo_action"
DIFFERS = "It was changed since; nothing of this action was taken back, so that nothing is lost."


class CannotUndo(Exception):
    """Nothing was taken back; the message is for people and models. `findings` say why, part by part."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = findings


@dataclass(slots=True)
class Standing:
    """How things stand, as far as they were looked at: read once, then as a preview or an undo would leave them.

    lock: what is read is kept from others until the transaction ends.
    """

    owner: int
    lock: bool = False
    seen: dict[tuple[str, str], Image | None] = field(default_factory=dict)

    def finding(self, change: Change) -> Finding:
        restorer = all_restorers().get(change.kind)
        if restorer is None:
            return Finding(Verdict.LASTING, change, "Nobody knows any more how to put this back.")
        key = change.kind, change.id
        if key not in self.seen:
            self.seen[key] = restorer.read(self.owner, change.id, lock=self.lock)
        hanging = restorer.hanging(self.owner, change.id) if change.before is None else ""
        found = compared(change, self.seen[key], hanging)
        if found.verdict is Verdict.UNDO:
            self.seen[key] = found.target
        return found


def recent(owner: int, thread_id: UUID, most: int) -> Iterable[AgentAction]:
    """The last calls of a thread that did something, the newest first."""
    mine = AgentAction.objects.filter(user_id=owner, thread_id=thread_id, status=ActionStatus.DONE)
    return mine.exclude(effect=Effect.PURE).order_by("-created_at", "-step", "-position")[:most]


def told(action: AgentAction) -> str:
    """What a call did: "Created a note Shoes"."""
    tool = registry.find(action.tool)
    return f"{tool.wording.done if tool else action.tool} {action.summary}".strip()


def record_of(action: AgentAction) -> UndoRecord | None:
    """What is known of what a call changed; None when there is nothing to take back."""
    if action.status != ActionStatus.DONE or action.undo is None:
        return None
    try:
        return UndoRecord.model_validate(action.undo)
    except ValidationError:
        return None


def can_be_undone(action: AgentAction) -> bool:
    record = record_of(action)
    return record is not None and bool(record.changes) and not action.undone


def findings(action: AgentAction, standing: Standing) -> list[Finding]:
    """What an undo would do with each part of what a call did, the last one first."""
    record = record_of(action) or UndoRecord()
    parts = [standing.finding(change) for change in reversed(record.changes)]
    return parts + [Finding(Verdict.LASTING, why=words) for words in record.lasting]


def preview(actions: Iterable[AgentAction], owner: int) -> list[tuple[AgentAction, list[Finding]]]:
    """What would become of each of these, taken back in this order. Changes nothing."""
    standing = Standing(owner)
    return [(action, findings(action, standing)) for action in actions]


def undo(action_id: UUID, owner: int) -> tuple[UndoRecord, list[Finding]]:
    """Take back what a call did, within an open transaction, and mark it as undone.

    Returns:
        What this changed in turn, and what became of each part.

    Raises:
        CannotUndo: it is not the owner's, was undone already, or a part of it has been changed since.
    """
    action = AgentAction.objects.select_for_update(no_key=True).filter(pk=action_id, user_id=owner).first()
    if action is None:
        raise CannotUndo("There is no such action.")
    if action.undone:
        raise CannotUndo("This was undone already.")
    if not can_be_undone(action):
        raise CannotUndo("There is nothing about this that could be undone.")
    parts = findings(action, Standing(owner, lock=True))
    if any(part.verdict is Verdict.CONFLICT for part in parts):
        raise CannotUndo(DIFFERS, parts)
    changes = [_put_back(part.change, part, owner) for part in parts if part.change and part.verdict is Verdict.UNDO]
    if not changes:
        raise CannotUndo("It is as it was before; there is nothing to undo.", parts)
    AgentAction.objects.filter(pk=action.pk).update(undone=True)
    AgentAction.objects.filter(undone_by=action).update(undone=False)
    return UndoRecord(changes=tuple(changes)), parts


def _put_back(change: Change, part: Finding, owner: int) -> Change:
    restorer = all_restorers()[change.kind]
    try:
        restorer.write(owner, change.id, part.target)
    except CannotRestore as error:
        raise CannotUndo(f"“{change.name}” cannot be put back: {error}") from error
    return restorer.change(change.id, change.name, part.now, part.target)


def recorded(action: AgentAction, owner: int, record: UndoRecord, words: str) -> AgentAction:
    """Write down that a person took an action back: an action of theirs, without a run."""
    return AgentAction.objects.create(
        id=new_id(),
        thread_id=action.thread_id,
        user_id=owner,
        step=0,
        position=0,
        call_id="",
        tool=NAME,
        effect=Effect.LOCAL,
        risk=Risk.ALLOWED,
        reversal=Reversal.UNDOABLE,
        arguments={"action": str(action.pk)},
        status=ActionStatus.DONE,
        summary=words,
        undo=record.model_dump(mode="json"),
        undoes=action,
        started_at=Now(),
        finished_at=Now(),
    )
