"""Forgetting: what is on record as having relied on a source, and its removal in one deed (mission E5).

Relied on a source has what an agent wrote in a run after it had read the source there, and the summary of a session in
which it did. What an agent took from it without a trace is not on record, and the pages say so.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Func, JSONField, Q
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from memory.archived import ENTRIES
from memory.models import AgentHistory, Document, Learning, Note, Thread, ThreadMessage
from memory.text import clip
from tools import registry
from tools.changes import Change, Image, UndoRecord
from tools.deeds import by_person
from tools.learnings import LearningRestorer, image as image_of_learning
from tools.models import ActionStatus, AgentAction
from tools.restoring import CannotRestore, Restorer, all_restorers
from tools.undo import record_of

FORGOTTEN: Final = "forget_source"
KINDS: Final = (
    *("learning", "note", "document", "file", "part", "assessment", "proposal"),
    *("measurement", "schedule", "feed_item", "session"),
)
"""Of what can be removed, by their restorers, in the order in which they are listed."""
MOST: Final = 200
RUNS_OF_ENTRIES: Final = Func(
    "entries", template="jsonb_path_query_array(%(expressions)s, '$[*].run')", output_field=JSONField()
)
BLANK: Final[Image] = {"title": "", "summary": "", "text": ""}


class SessionRestorer(Restorer):
    """What agents know of an archived session, which its user can read all the same."""

    kind = "session"

    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        mine = AgentHistory.objects.done().filter(pk=key, thread__user=owner).only(*BLANK)
        found = (mine.select_for_update(of=("self",)) if lock else mine).first()
        image: Image = {name: getattr(found, name) for name in BLANK} if found else BLANK
        return image if image != BLANK else None

    def there(self, owner: int, keys: Collection[str]) -> set[str]:
        mine = AgentHistory.objects.done().filter(pk__in=keys, thread__user=owner).exclude(**BLANK)
        return {str(pk) for pk in mine.values_list("pk", flat=True)}

    def write(self, owner: int, key: str, image: Image | None) -> None:
        AgentHistory.objects.filter(pk=key, thread__user=owner).update(**(image or BLANK))


@dataclass(frozen=True, slots=True)
class Basis:
    """What is to be forgotten.

    thread: where it is written down that it was. label: as people call it. reads: the step of each run in which it was
    read first. own: kind and id, where it can go itself.
    """

    thread: Thread
    label: str
    reads: Mapping[UUID, int]
    own: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Relied:
    """Something that relied on it. made: then; it was only changed otherwise. run: in which that was."""

    kind: str
    id: str
    name: str
    made: bool
    run: UUID | None = field(default=None)

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.id}"


def of_message(message: ThreadMessage) -> Basis:
    """What a user has said: read by the run that took it up."""
    label = _("your message of %(at)s") % {"at": date_format(localtime(message.created_at), "j F Y, H:i")}
    return Basis(message.thread, label, {message.run_id: -1} if message.run_id else {})


def of_note(note: Note) -> Basis:
    read = Q(arguments__id=str(note.pk))
    listed = ~Q(arguments__has_key="id") & Q(output__contains=f"(id {note.pk})")
    from_afar = Q(user=note.user_id, arguments__note__iexact=note.title)  # by the assistant
    reads = _reads("note", Q(thread=note.thread_id) & (read | listed) | from_afar)
    return Basis(note.thread, note.title, reads, ("note", str(note.pk)))


def of_document(document: Document, thread: Thread) -> Basis:
    """
    Args:
        thread: of its agent; of the assistant for one that is for all agents.
    """
    whose = Q(thread=document.thread_id) if document.thread_id else Q(user=document.user_id)
    reads = _reads("document", whose & Q(arguments__name__iexact=document.name))
    return Basis(thread, document.name, reads, ("document", str(document.pk)))


def of_file(thread: Thread, path: str) -> Basis:
    return Basis(thread, path, _reads("file", Q(thread=thread, arguments__path=path)))


def of_session(session: AgentHistory) -> Basis:
    label = session.title or _("the session of %(at)s") % {
        "at": date_format(localtime(session.ended_at or session.created_at), "j F Y, H:i")
    }
    runs = {entry.run for entry in ENTRIES.validate_python(session.entries) if entry.run}
    return Basis(session.thread, label, dict.fromkeys(runs, -1), ("session", str(session.pk)))


def relied_on(basis: Basis) -> list[Relied]:
    """What is there still of all that relied on it, the source itself first, where it can go."""
    found: dict[tuple[str, str], Relied] = {}
    if basis.own:
        found[basis.own] = Relied(*basis.own, basis.label, made=True)
    for relied in (*_written(basis), *_summed_up(basis)):
        found.setdefault((relied.kind, relied.id), relied)
    there = list(_those_there(basis.thread.user_id, found))
    own = [each for each in there if (each.kind, each.id) == basis.own]
    return own + sorted((each for each in there if each not in own), key=lambda each: KINDS.index(each.kind))


def forget(basis: Basis, keys: Collection[str]) -> AgentAction | None:
    """Remove what was chosen of `relied_on`, as one deed of the user that can be undone. None: nothing was.

    Args:
        keys: of those chosen.

    Raises:
        CannotRestore: a file cannot be removed now; nothing was. When that shows only after others of them are gone,
            those are what was forgotten.
    """
    owner = basis.thread.user_id
    with transaction.atomic():
        chosen = [each for each in relied_on(basis) if each.key in keys]
        outside = sorted((each for each in chosen if not _restorer(each).transactional), key=lambda each: each.id)
        inside = [each for each in chosen if _restorer(each).transactional]
        # Workspaces are locked before threads, and those before their rows; what lies outside is removed last.
        stood = {each.key: _restorer(each).read(owner, each.id, lock=True) for each in outside}
        for image in stood.values():
            if image and image.get("problem"):
                raise CannotRestore(str(image["problem"]))
        Thread.objects.select_for_update(no_key=True).get(pk=basis.thread.pk)
        stood |= {each.key: _restorer(each).read(owner, each.id, lock=True) for each in inside}
        changes = _let_go([UUID(each.id) for each in inside if each.kind == "learning"])
        for each in (*inside, *outside):
            if (before := stood[each.key]) is None:
                continue
            try:
                _restorer(each).write(owner, each.id, None)
            except CannotRestore:
                if any(not all_restorers()[change.kind].transactional for change in changes):
                    break
                raise
            changes.append(Change(kind=each.kind, id=each.id, name=clip(each.name, 80), before=before, after=None))
        if not changes:
            return None
        news = "wants you to forget what came of"
        arguments = {"source": clip(basis.label, 200)}
        return by_person(basis.thread, FORGOTTEN, arguments, basis.label, UndoRecord(changes=tuple(changes)), news)


def _reads(kind: str, which: Q) -> dict[UUID, int]:
    """The step of each run in which a tool first read a source of a kind."""
    first: dict[UUID, int] = {}
    readers = [tool.name for tool in registry.all_tools().values() if tool.reads == kind]
    done = AgentAction.objects.filter(which, tool__in=readers, status=ActionStatus.DONE, run__isnull=False)
    for run, step in done.order_by("-created_at").values_list("run", "step")[:MOST]:
        first[run] = min(step, first.get(run, step))
    return first


def _written(basis: Basis) -> Iterator[Relied]:
    """What runs wrote once they had read it."""
    did = AgentAction.objects.filter(run__in=basis.reads, status=ActionStatus.DONE, undone=False, undo__isnull=False)
    for action in did.order_by("-created_at")[:MOST]:
        assert action.run_id is not None
        if action.step <= basis.reads[action.run_id]:
            continue
        for change in record_of(action).changes:
            made = change.before is None
            # A learning never comes to say something else: what was changed of one is that another took its place.
            if change.kind in KINDS and (made or change.kind != "learning"):
                yield Relied(change.kind, change.id, change.name, made, action.run_id)


def _summed_up(basis: Basis) -> Iterator[Relied]:
    """Sessions whose summaries tell of a run that had read it."""
    tells = reduce(or_, (Q(entries__contains=[{"run": str(run)}]) for run in basis.reads), Q(pk__in=[]))
    mine = AgentHistory.objects.done().filter(tells, thread__user=basis.thread.user_id)
    for session in mine.annotate(runs=RUNS_OF_ENTRIES).defer("entries", "text"):
        run = next(run for run in basis.reads if str(run) in vars(session)["runs"])
        name = session.title or clip(session.summary, 80)
        yield Relied("session", str(session.pk), name, made=True, run=run)


def _those_there(owner: int, found: Mapping[tuple[str, str], Relied]) -> Iterator[Relied]:
    """In their order, and looked for kind by kind."""
    keys: dict[str, list[str]] = {}
    for kind, key in found:
        keys.setdefault(kind, []).append(key)
    there = {kind: all_restorers()[kind].there(owner, named) for kind, named in keys.items()}
    return (each for each in found.values() if each.id in there[each.kind])


def _let_go(learnings: Collection[UUID]) -> list[Change]:
    """Let nothing point to learnings that go; the first change, so that it is undone last."""
    changes = []
    for old in Learning.objects.filter(replaced_by__in=learnings).exclude(pk__in=learnings).select_for_update():
        before = image_of_learning(old)
        old.replaced_by = None
        old.save(update_fields=["replaced_by"])
        changes.append(LearningRestorer().change(str(old.pk), clip(old.text, 80), before, image_of_learning(old)))
    return changes


def _restorer(of: Relied) -> Restorer:
    return all_restorers()[of.kind]
