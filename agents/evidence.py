"""Done means proven (mission A8): a claim of the model counts when it leads to a deed that is on record and holds.

A deed is a call since the plan was made, by the agent itself or by a helper that it has sent off since: one that went
well, was not undone, and of which something still holds. A file or a note counts as the call that let it be as it is,
so that one deed has one name, and the report that a helper has left as a note counts as that helper's. What the model
says of its work is no deed, nor is a call that only says something, looks at what is ours, or changes nothing.

What a call changed holds as long as it stands as the agent has left it. The agent itself may build on it, and the call
then still counts, because work goes on where it ended; once somebody else has changed it, or it is as it was before the
agent began, it does not: who writes a file and deletes it has done nothing. Of a call that changed several things one
that holds is enough, because commands leave behind what nobody wants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db.models import Q
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.engine.reports import NO_REPORT
from agents.models import AgentTask, TaskStatus
from agents.plan_item import PlanItem
from memory.models import Author, Note
from memory.text import clip
from tools import files, registry
from tools.base import Reversal
from tools.changes import Change, Image, Verdict, compared
from tools.models import ActionQuerySet, ActionStatus, AgentAction
from tools.restoring import CannotRestore, all_restorers
from tools.sandbox.beneath import OutOfReach
from tools.sandbox.folder import Folder
from tools.signature import digest
from tools.undo import record_of, told

type Kind = Literal["action", "file", "note"]

_IN_ORDER = ("finished_at", "step", "position")
_CHANGED_SINCE = "what it did is gone, or somebody else has changed it since."


class NotProven(Exception):
    """A claim leads to nothing; the message tells the model which and why."""


class Claim(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    name: str = Field(
        min_length=1,
        max_length=500,
        description="Of an action its id, or the name of the tool for its last call; of a file its path; of a note "
        "its title or id.",
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """key: the same for the same deed, whatever it was named by. words: for people."""

    key: str
    words: str


def proofs(item: PlanItem, claims: Sequence[Claim]) -> list[Proof]:
    """What the claims for a subtask lead to, each deed once.

    Raises:
        NotProven: there are none, or one of them leads to nothing.
    """
    if not claims:
        raise NotProven("Name what proves it: an action, a file or a note.")
    found = {"action": _action, "file": _file, "note": _note}
    shown = [found[claim.kind](item, claim.name.strip()) for claim in claims]
    return list({proof.key: proof for proof in shown}.values())


def undone_keys(keys: Sequence[str]) -> set[str]:
    """The keys of those deeds that were taken back since."""
    ids = [key.removeprefix("action:") for key in keys if key.startswith("action:")]
    undone = AgentAction.objects.filter(pk__in=ids, undone=True).values_list("pk", flat=True) if ids else ()
    return {f"action:{each}" for each in undone}


def _action(item: PlanItem, name: str) -> Proof:
    calls = _work(item)
    try:
        action = calls.filter(pk=UUID(name)).first()
    except ValueError:
        action = calls.filter(tool=name).order_by(*_IN_ORDER).last()
    if action is None:
        raise NotProven(
            f"Since the plan was made there was no action {clip(name, 60)!r} that can prove a step. What only reads "
            "what is here, plans or talks cannot."
        )
    if problem := _weakness(item, action):
        raise NotProven(f"{told(action)!r} proves nothing: {problem}")
    return Proof(_key(action), told(action))


def _work(item: PlanItem) -> ActionQuerySet:
    """The calls since the plan was made that are work, by the agent and the helpers that it has sent off since."""
    helpers = AgentTask.objects.filter(parent=item.thread_id, created_at__gte=item.created_at)
    by_whom = Q(thread=item.thread_id) | Q(thread__in=helpers.values("thread"))
    since = AgentAction.objects.filter(
        by_whom, user_id=item.user_id, run__isnull=False, finished_at__gte=item.created_at
    )
    return since.filter(tool__in=[name for name, tool in registry.tools_of(item.user_id).items() if tool.is_work])


def _weakness(item: PlanItem, action: AgentAction) -> str:
    """Why a call proves nothing; empty when it does."""
    if action.status != ActionStatus.DONE:
        return f"its outcome is {action.status}."
    if action.undone:
        return "it was undone."
    tool = registry.find(action.tool, action.user_id)
    if tool is None or not tool.went_well(action.output):
        return "it ended without success."
    if action.undo is None:
        return "" if _counts_unchanged(tool, action) else "it changed nothing."
    changes = record_of(action).changes
    return "" if not changes or any(_holds(item, change) for change in changes) else _CHANGED_SINCE


def _counts_unchanged(tool: registry.AnyTool, action: AgentAction) -> bool:
    try:
        return tool.counts_unchanged(tool.Arguments.model_validate(action.arguments))
    except ValidationError:
        return False


def _key(action: AgentAction) -> str:
    """Of what only looked at something, what it asked: the same question again is no other deed."""
    looked = action.undo is None and action.reversal in (Reversal.NOTHING, Reversal.UNDOABLE)
    return f"call:{digest(action.tool, action.arguments)}" if looked else f"action:{action.pk}"


def _holds(item: PlanItem, change: Change) -> bool:
    """Whether a change still holds (see above)."""
    try:
        now = all_restorers()[change.kind].read(item.user_id, change.id)
    except CannotRestore as busy:
        raise NotProven(str(busy)) from busy
    own = [each for action in _deeds(item, change.kind, change.id) for each in _changes(action, change.kind, change.id)]
    as_left = compared(own[-1], now).verdict is Verdict.UNDO
    return as_left and _before(own, now) != now and (now is None) == (change.after is None)


def _before(changes: Sequence[Change], now: Image | None) -> Image | None:
    """How a thing was before all of these changes, which left it as it is now."""
    image = now
    for each in reversed(changes):
        image = each.before if image is None or each.before is None else image | each.before
    return image


def _deeds(item: PlanItem, kind: str, key: str) -> ActionQuerySet:
    """The calls that have changed a thing, in order."""
    did = _work(item).filter(status=ActionStatus.DONE, undone=False)
    return did.filter(undo__changes__contains=[{"kind": kind, "id": key}]).order_by(*_IN_ORDER)


def _changes(action: AgentAction, kind: str, key: str) -> list[Change]:
    return [each for each in record_of(action).changes if (each.kind, each.id) == (kind, key)]


def _file(item: PlanItem, path: str) -> Proof:
    try:
        entry = Folder(item.thread_id).entry(files.named(path))
    except (files.FileRefused, OutOfReach) as problem:
        raise NotProven(f"There is no file {clip(path, 200)!r} in the workspace.") from problem
    proof = _made(item, "file", f"{item.thread_id}/{entry.path}", entry.path)
    if proof is None:
        raise NotProven(f"The file {entry.path!r} is there, but you have not written it since the plan was made.")
    return proof


def _note(item: PlanItem, name: str) -> Proof:
    notes = Note.objects.filter(thread=item.thread_id)
    try:
        note = notes.filter(pk=UUID(name)).first()
    except ValueError:
        note = notes.filter(title__iexact=name).order_by("-updated_at").first()
    if note is None:
        raise NotProven(f"There is no note {clip(name, 60)!r} here.")
    proof = _made(item, "note", str(note.pk), note.title) or _reported(item, note)
    if proof is None:
        raise NotProven(
            f"The note {clip(note.title, 60)!r} is there, but you have not written it since the plan was made."
        )
    return proof


def _made(item: PlanItem, kind: str, key: str, words: str) -> Proof | None:
    """The call that let a thing be as it is; None: none did."""
    action = _deeds(item, kind, key).last()
    if action is None:
        return None
    if not any(_holds(item, change) for change in _changes(action, kind, key)):
        raise NotProven(f"{clip(words, 200)!r} proves nothing: {_CHANGED_SINCE}")
    return Proof(_key(action), words)


def _reported(item: PlanItem, note: Note) -> Proof | None:
    """The helper whose report a note is, as it was given."""
    since = AgentTask.objects.filter(parent=item.thread_id, created_at__gte=item.created_at, report_as_note=True)
    for task in since.filter(status=TaskStatus.COMPLETED).exclude(result=NO_REPORT):
        if (note.author, note.title, note.body) == (Author.AGENT, *task.as_note()):
            return Proof(f"task:{task.pk}", note.title)
    return None
