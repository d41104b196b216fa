"""Taking back what calls did: what would become of each part, and the undo, which is an action itself, so that it can
be taken back in turn (mission D8, cases UND-01 and UND-02).

Lock order: action, things, thread. Of what one action did in our database all is taken back or nothing, and nothing at
all when something was changed since; what lies elsewhere comes last, and what fails of that is told (case UND-03).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from memory.ids import new_id
from memory.text import clip
from tools import registry
from tools.base import Effect, Reversal, Risk
from tools.changes import Change, Finding, Image, UndoRecord, Verdict, compared
from tools.models import ActionStatus, AgentAction, of_agent
from tools.restoring import CannotRestore, Restorer, all_restorers

NAME = "undo_action"
LONGEST_NAME = 80
"""Characters that the summary of a call gives of the name of what it changed."""
NOTHING = "There is nothing about this that could be undone."


class CannotUndo(Exception):
    """Nothing was taken back; the message is for people and models."""

    @classmethod
    def because(cls, parts: Sequence[Finding]) -> Self:
        """Of what nothing can be taken back as it stands."""
        kept = [part for part in parts if part.verdict in (Verdict.CONFLICT, Verdict.LASTING, Verdict.FAILED)]
        if not kept:
            return cls("It is as it was before; there is nothing to undo.")
        return cls(f"Nothing was undone. {told_of(kept)}")


@dataclass(frozen=True, slots=True)
class Undone:
    """
    record: what the undo changed in turn. parts: what became of each part.
    touched: the actions that stand otherwise now: this one, and if it was an undo itself, what that had taken back.
        None when a part has failed, because then it can be tried again.
    """

    record: UndoRecord
    parts: Sequence[Finding]
    touched: Sequence[UUID] = ()

    @property
    def is_whole(self) -> bool:
        return all(part.verdict is not Verdict.FAILED for part in self.parts)


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
    """The last calls of a thread's agent and its helpers that did something or looked outside, the newest first."""
    mine = AgentAction.objects.with_standing().defer("undo", "output", "arguments")
    did = mine.filter(of_agent(thread_id), user_id=owner, status=ActionStatus.DONE, run__isnull=False)
    work = [name for name, tool in registry.tools_of(owner).items() if tool.is_work]
    told_of = did.filter(~Q(effect=Effect.PURE) | Q(tool__in=work)).select_related("thread__agents_agenttask")
    return told_of.order_by("-created_at", "-step", "-position")[:most]


def told(action: AgentAction) -> str:
    """What a call did: "Created a note Shoes"."""
    return _sentence(action, action.summary)


def deed(action: AgentAction) -> str:
    """As `told`, with the name of what it changed in quotes."""
    names = {clip(change.name, LONGEST_NAME) for change in record_of(action).changes}
    return _sentence(action, f"“{action.summary}”" if action.summary in names else action.summary)


def _sentence(action: AgentAction, about: str) -> str:
    words = registry.words_of(action.tool)
    return f"{words.done if words else action.tool} {about}".strip()


def quoted(action: AgentAction) -> str:
    """The summary of its undo: "Undid" + “Created a note Shoes”."""
    return f"“{clip(told(action), LONGEST_NAME)}”"


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
    try:
        parts = findings(action, Standing(owner, lock=True))
    except CannotRestore as busy:
        raise CannotUndo(f"Nothing was undone. {busy}") from busy
    if not is_possible(parts):
        raise CannotUndo.because(parts)
    done = [parts[place] for place in _put_back(parts, owner)]
    if not done:
        raise CannotUndo.because(parts)
    undone = Undone(_record(done), parts)
    return replace(undone, touched=_marked(action)) if undone.is_whole else undone


def _put_back(parts: list[Finding], owner: int) -> Iterator[int]:
    """Put back what can be: first what is in our database, of which nothing may fail, then the rest, of which what has
    failed is put down as that. Yields the places of what was put back.

    Raises:
        CannotUndo: something in our database could not be put back.
    """
    due = [place for place, part in enumerate(parts) if part.verdict is Verdict.UNDO]
    for place in sorted(due, key=lambda place: not _restorer(parts[place]).transactional):
        part = parts[place]
        assert part.change is not None
        try:
            _restorer(part).write(owner, part.change.id, part.target)
        except CannotRestore as error:
            if _restorer(part).transactional:
                raise CannotUndo(f"“{part.change.name}” cannot be put back: {error}") from error
            parts[place] = replace(part, verdict=Verdict.FAILED, why=f"It cannot be put back: {error}")
        else:
            yield place


def _record(done: Iterable[Finding]) -> UndoRecord:
    """What was put back, as a change that can be taken back in turn, if it can."""
    changes: list[Change] = []
    lasting: list[str] = []
    for part in done:
        assert part.change is not None
        restorer = _restorer(part)
        changes.append(restorer.change(part.change.id, part.change.name, part.now, part.target))
        lasting += filter(None, [restorer.refusal(part.target, part.now)])
    return UndoRecord(lasting=tuple(lasting)) if lasting else UndoRecord(changes=tuple(changes))


def _restorer(part: Finding) -> Restorer:
    assert part.change is not None
    return all_restorers()[part.change.kind]


def locked(action_id: UUID, owner: int) -> AgentAction | None:
    """An action of the owner, which nobody else takes back until the transaction ends."""
    return AgentAction.objects.select_for_update(no_key=True).filter(pk=action_id, user_id=owner).first()


def _marked(action: AgentAction) -> list[UUID]:
    """Mark an action as undone; what it had undone itself holds again, and so on to the first."""
    touched, undone = [], True
    for each in _chain(action):
        AgentAction.objects.filter(pk=each.pk).update(undone=undone)
        touched.append(each.pk)
        undone = not undone
    return touched


def root_of(action: AgentAction) -> AgentAction:
    """What an undo, or an undo of an undo, is about in the end; itself when it is none."""
    return [*_chain(action)][-1]


def _chain(action: AgentAction) -> Iterator[AgentAction]:
    each: AgentAction | None = action
    while each is not None:
        yield each
        each = each.undoes


def recorded(action: AgentAction, owner: int, undone: Undone) -> AgentAction:
    """Write down that a person took an action back, with what became of each part: an action without a run."""
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
        output=told_of(undone.parts),
        undo=undone.record.model_dump(mode="json"),
        undoes=action,
        started_at=Now(),
        finished_at=Now(),
    )
