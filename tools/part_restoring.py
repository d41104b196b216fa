"""How what a reflective companion keeps is read and put back by an undo (missions D8 and D11)."""

from datetime import datetime
from typing import Any, ClassVar

from memory.models import Thread
from memory.text import clip
from tools.changes import Image, UndoRecord
from tools.part_models import Assessment, Part, Proposal, Record
from tools.restoring import CannotRestore, Restorer


class RecordRestorer(Restorer):
    """Of one kind of records."""

    model: ClassVar[type[Record]]

    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        records = self.model._default_manager.filter(pk=key, user_id=owner)
        record = (records.select_for_update() if lock else records).first()
        return image(record) if record else None

    def write(self, owner: int, key: str, image: Image | None) -> None:
        records = self.model._default_manager.filter(pk=key, user_id=owner)
        if image is None:
            records.delete()
            return
        fields: dict[str, Any] = {"sources": []} | image
        fields["created_at"] = datetime.fromisoformat(str(image["created_at"]))
        thread = Thread.objects.filter(pk=fields.pop("thread"), user_id=owner).first()
        if thread is None:
            raise CannotRestore("the conversation that it belonged to is gone.")
        record = records.first() or self.model(id=key, user_id=owner)
        record.thread = thread
        for name, value in fields.items():
            setattr(record, name, value)
        record.save()


class PartRestorer(RecordRestorer):
    kind = "part"
    model = Part


class AssessmentRestorer(RecordRestorer):
    kind = "assessment"
    model = Assessment


class ProposalRestorer(RecordRestorer):
    kind = "proposal"
    model = Proposal


def image(record: Record) -> Image:
    """Everything that it says, and where it belongs."""
    marked: Image = {"sources": record.sources} if record.sources else {}
    said: Image = {name: getattr(record, name) for name in record.KEPT}
    return marked | said | {"thread": str(record.thread_id), "created_at": record.created_at.isoformat()}


def recorded(record: Record, before: Image | None, after: Image | None) -> UndoRecord | None:
    """What a call did to a record; None when that is nothing."""
    if before == after:
        return None
    change = RESTORERS[type(record)].change(str(record.pk), clip(record.title(), 80), before, after)
    return UndoRecord(changes=(change,))


RESTORERS: dict[type[Record], RecordRestorer] = {
    restorer.model: restorer for restorer in (PartRestorer(), AssessmentRestorer(), ProposalRestorer())
}
