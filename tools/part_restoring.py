"""How what a reflective companion keeps is read and put back by an undo (missions D8 and D11)."""

from collections.abc import Callable

from memory.text import clip
from tools.changes import Change, Image, UndoRecord
from tools.part_models import Assessment, Part, Proposal, ProposalState, Record
from tools.restoring import all_restorers
from tools.rows import RowRestorer

DECIDED = "Its user has decided about it as it is now; other words are another proposal."


def image(record: Record) -> Image:
    """Everything that it says, and where it belongs."""
    marked: Image = {"sources": record.sources} if record.sources else {}
    said: Image = {name: getattr(record, name) for name in record.KEPT}
    return marked | said | {"thread": str(record.thread_id), "created_at": record.created_at.isoformat()}


class PartRestorer(RowRestorer):
    kind = "part"
    model = Part
    image = staticmethod(image)


class AssessmentRestorer(RowRestorer):
    kind = "assessment"
    model = Assessment
    image = staticmethod(image)


class ProposalRestorer(RowRestorer):
    """What its user has decided about keeps the words that they have read, in whatever order things are taken back."""

    kind = "proposal"
    model = Proposal
    image = staticmethod(image)

    def refusal(self, now: Image | None, target: Image | None) -> str:
        if now is None or target is None or now["state"] == ProposalState.OPEN:
            return ""
        return DECIDED if target.get("text", now["text"]) != now["text"] else ""

    def change(self, key: str, name: str, before: Image | None, after: Image | None) -> Change:
        """A decision is about these words, so it comes back only to them."""
        if before is not None and after is not None and before["state"] != after["state"]:
            before, after = ({field: image[field] for field in self.model.KEPT} for image in (before, after))
            return Change(kind=self.kind, id=key, name=name, before=before, after=after)
        return super().change(key, name, before, after)


def changed[R: Record](record: R, change: Callable[[R], object]) -> UndoRecord | None:
    """Let a function change a record, without saving it; returns what it did, None when that is nothing."""
    before = image(record)
    change(record)
    return recorded(record, before, image(record))


def recorded(record: Record, before: Image | None, after: Image | None) -> UndoRecord | None:
    """What a call did to a record; None when that is nothing."""
    if before == after:
        return None
    restorer = all_restorers()[record.kind()]
    return UndoRecord(changes=(restorer.change(str(record.pk), clip(record.title(), 80), before, after),))
