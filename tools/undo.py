"""Taking back what calls did: what would become of each part, and the undo, which is an action itself, so that it can
be taken back in turn (mission D8, cases UND-01 and UND-02).

Lock order: action, things, thread. Of one action all is taken back or nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from django.db.models.functions import Now

from memory.ids import new_id
from memory.text import clip
from tools import registry
from tools.base import Effect, Reversal, Risk
from tools.changes import Change, Finding, Image, UndoRecord, Verdict, compared
from tools.models import ActionStatus, AgentAction
from tools.restoring import CannotRestore, Restorer, all_restorers

NAME = "undo_action"
NOTHING = "There is nothing about this that could be undone."


class CannotUndo(Exception):
    """Nothing was taken back; the message is for people and models."""

    @classmethod
    def because(cls, parts: Sequence[Finding]) -> Self:
        """Of what nothing can be taken back as it stands."""
        kept = [part for part in parts if part.verdict in (Verdict.CONFLICT, Verdict.LASTING)]
        if not kept:
            return cls("It is as it was before; there is nothing to undo.")
        return cls(f"Nothing was undone. {told_of(kept)}")


@dataclass(frozen=True, slots=True)
class Undone:
    """
    record: what the undo changed in turn. parts: what became of each part.
    touched: the actions that stand otherwise now: this one, and if it was an undo itself, what that had taken back.
    """

    record: UndoRecord
    parts: Sequence[Finding]
    touched: Sequence[UUID]


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
        now = self.seen[key]
        found = compared(change, now)
        if found.verdict is not Verdict.BACK_ALREADY and (why := restorer.refusal(now, change.before)):
            return Finding(Verdict.LASTING, change, why, now=now)
        if found.verdict is Verdict.UNDO:
            self.seen[key] = found.target
        return found


def recent(owner: int, thread_id: UUID, most: int) -> Iterable[AgentAction]:
    """The last calls of a thread's agent that did something, the newest first."""
    mine = AgentAction.objects.with_standing().defer("undo", "output", "arguments")
    did = mine.filter(user_id=owner, thread_id=thread_id, status=ActionStatus.DONE, run__isnull=False)
    return did.exclude(effect=Effect.PURE).order_by("-created_at", "-step", "-position")[:most]


def told(action: AgentAction) -> str:
    """What a call did: "Created a note Shoes"."""
    tool = registry.find(action.tool)
    return f"{tool.wording.done if tool else action.tool} {action.summary}".strip()


def quoted(action: AgentAction) -> str:
    """The summary of its undo: "Undid" + “Created a note Shoes”."""
    return f"“{clip(told(action), 80)}”"


def said(part: Finding) -> str:
    """What becomes of one part, as a sentence."""
    name = f"“{part.change.name}”: " if part.change else ""
    match part.verdict:
        case Verdict.UNDO:
            return f"{name}it is as it was before."
        case Verdict.BACK_ALREADY:
            return f"{name}it was as before already."
        case _:
            fields = f" ({', '.join(part.fields)})" if part.fields else ""
            return f"{name}{part.why}{fields}"


def told_of(parts: Iterable[Finding]) -> str:
    """What becomes of all parts."""
    return " ".join(map(said, parts))


def record_of(action: AgentAction) -> UndoRecord:
    """What a call changed."""
    if action.status != ActionStatus.DONE or action.undo is None:
        return UndoRecord()
    return UndoRecord.model_validate(action.undo)


def can_be_undone(action: AgentAction) -> bool:
    """Whether it is known how, and it was not done yet; whether the things have been changed since is seen then."""
    return bool(record_of(action).changes) and not action.undone


def findings(action: AgentAction, standing: Standing) -> list[Finding]:
    """What an undo would do with each part of what a call did, the last one first."""
    record = record_of(action)
    parts = [standing.finding(change) for change in reversed(record.changes)]
    return parts + [Finding(Verdict.LASTING, why=words) for words in record.lasting]


def is_possible(parts: Sequence[Finding]) -> bool:
    """Whether something would be taken back, and nothing lost by it."""
    verdicts = {part.verdict for part in parts}
    return Verdict.UNDO in verdicts and Verdict.CONFLICT not in verdicts


def holding(action: AgentAction) -> AgentAction | None:
    """The undo of an action that holds now."""
    return AgentAction.objects.filter(undoes=action, undone=False).order_by("-created_at").first()


def undo(action: AgentAction, owner: int) -> Undone:
    """Take back what a call did, within an open transaction, and mark it as undone.

    Args:
        action: as `locked` gives it.

    Raises:
        CannotUndo: it was undone already, or a part of it has been changed since.
    """
    if action.undone:
        raise CannotUndo("This was undone already.")
    if not can_be_undone(action):
        raise CannotUndo(NOTHING)
    parts = findings(action, Standing(owner, lock=True))
    if not is_possible(parts):
        raise CannotUndo.because(parts)
    changes: list[Change] = []
    lasting: list[str] = []
    for part in parts:
        if part.change and part.verdict is Verdict.UNDO:
            restorer = all_restorers()[part.change.kind]
            _put_back(restorer, part.change, part.target, owner)
            changes.append(restorer.change(part.change.id, part.change.name, part.now, part.target))
            lasting += filter(None, [restorer.refusal(part.target, part.now)])
    record = UndoRecord(lasting=tuple(lasting)) if lasting else UndoRecord(changes=tuple(changes))
    return Undone(record, parts, _marked(action))


def locked(action_id: UUID, owner: int) -> AgentAction | None:
    """An action of the owner, which nobody else takes back until the transaction ends."""
    return AgentAction.objects.select_for_update(no_key=True).filter(pk=action_id, user_id=owner).first()


def _put_back(restorer: Restorer, change: Change, target: Image | None, owner: int) -> None:
    try:
        restorer.write(owner, change.id, target)
    except CannotRestore as error:
        raise CannotUndo(f"“{change.name}” cannot be put back: {error}") from error


def _marked(action: AgentAction) -> list[UUID]:
    """Mark an action as undone; what it had undone itself holds again, and so on to the first."""
    touched, undone, each = [], True, action
    while True:
        AgentAction.objects.filter(pk=each.pk).update(undone=undone)
        touched.append(each.pk)
        if each.undoes is None:
            return touched
        each, undone = each.undoes, not undone


def recorded(action: AgentAction, owner: int, record: UndoRecord) -> AgentAction:
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
        arguments={"id": str(action.pk)},
        status=ActionStatus.DONE,
        summary=quoted(action),
        undo=record.model_dump(mode="json"),
        undoes=action,
        started_at=Now(),
        finished_at=Now(),
    )
