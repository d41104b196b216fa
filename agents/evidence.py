"""Done means proven (mission A8): a claim of the model counts when it leads to something that is on record.

Since the plan was made, by the agent itself or by helpers that it has sent off: a call that went well and still holds,
a file that lies there as it was written, a note that it wrote. What the model says of its work is no evidence, and
neither are calls that only say something.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from agents.plan_item import PlanItem
from memory.models import Note
from memory.text import clip
from tools import registry
from tools.file_models import WorkspaceFile, Writer
from tools.files import FileRefused, named
from tools.models import ActionQuerySet, ActionStatus, AgentAction, of_agent
from tools.sandbox.beneath import OutOfReach
from tools.sandbox.folder import Folder
from tools.undo import told

type Kind = Literal["action", "file", "note"]


class NotProven(Exception):
    """A claim leads to nothing; the message tells the model which and why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """name: of an action its id, or a tool's name for its last call; of a file its path; of a note its id or title."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Proof:
    """key: the same for the same thing in the same state. words: for people."""

    key: str
    words: str


def proofs(item: PlanItem, claims: Sequence[Claim]) -> list[Proof]:
    """What the claims for a subtask lead to.

    Raises:
        NotProven: there are none, or one of them leads to nothing.
    """
    if not claims:
        raise NotProven("Name what proves it: an action, a file or a note.")
    found = {"action": _action, "file": _file, "note": _note}
    return [found[claim.kind](item, claim.name.strip()) for claim in claims]


def _action(item: PlanItem, name: str) -> Proof:
    done = _work(item)
    try:
        action = done.filter(pk=UUID(name)).first()
    except ValueError:
        action = done.filter(tool=name).order_by("-created_at", "-step", "-position").first()
    if action is None:
        raise NotProven(f"Since the plan was made there was no action {clip(name, 60)!r} for it.")
    if problem := _weakness(action):
        raise NotProven(f"{told(action)} proves nothing: {problem}")
    return Proof(f"action:{action.pk}", told(action))


def _work(item: PlanItem) -> ActionQuerySet:
    """What the agent and its helpers did since the plan was made, as far as it is work."""
    mine = of_agent(item.thread_id)
    since = AgentAction.objects.filter(mine, user_id=item.user_id, run__isnull=False, finished_at__gte=item.created_at)
    return since.filter(tool__in=[name for name, tool in registry.tools_of(item.user_id).items() if tool.is_work])


def _weakness(action: AgentAction) -> str:
    """Why an action proves nothing; empty when it does."""
    if action.status != ActionStatus.DONE:
        return f"its outcome is {action.status}."
    if action.undone:
        return "it was undone."
    tool = registry.find(action.tool, action.user_id)
    if tool is None or not tool.went_well(action.output):
        return "it ended with a failure."
    return ""


def _file(item: PlanItem, path: str) -> Proof:
    try:
        entry = Folder(item.thread_id).entry(named(path))
    except (FileRefused, OutOfReach) as problem:
        raise NotProven(f"There is no file {clip(path, 200)!r} in the workspace.") from problem
    row = WorkspaceFile.objects.filter(workspace=item.thread_id, path=entry.path).first()
    written = row is not None and row.stamp == entry.stamp and row.writer in (Writer.AGENT, Writer.COMMAND)
    if row is None or not written or row.updated_at < item.created_at:
        raise NotProven(f"The file {entry.path!r} is there, but you have not written it since the plan was made.")
    return Proof(f"file:{row.sha256}:{entry.path}", entry.path)


def _note(item: PlanItem, name: str) -> Proof:
    notes = Note.objects.filter(thread=item.thread_id)
    try:
        note = notes.filter(pk=UUID(name)).first()
    except ValueError:
        note = notes.filter(title__iexact=name).order_by("-updated_at").first()
    if note is None:
        raise NotProven(f"There is no note {clip(name, 60)!r} here.")
    wrote = _work(item).filter(status=ActionStatus.DONE, undone=False)
    if not wrote.filter(undo__changes__contains=[{"kind": "note", "id": str(note.pk)}]).exists():
        raise NotProven(
            f"The note {clip(note.title, 60)!r} is there, but you have not written it since the plan was made."
        )
    return Proof(f"note:{note.pk}:{note.updated_at.isoformat()}", note.title)
