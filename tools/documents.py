"""How documents are read and put back by an undo (mission D8)."""

from memory.models import Document
from tools.changes import Image, UndoRecord
from tools.rows import RowRestorer


def image(document: Document) -> Image:
    return {
        "thread_id": str(document.thread_id) if document.thread_id else None,
        "name": document.name,
        "text": document.text,
        "author": document.author,
        "edited_by": document.edited_by,
        "sources": document.sources,
        "created_at": document.created_at.isoformat(),
    }


class DocumentRestorer(RowRestorer):
    kind = "document"
    model = Document
    stamps = ("updated_at",)
    fills = True
    image = staticmethod(image)


def record(document: Document, before: Image | None, after: Image | None) -> UndoRecord:
    return UndoRecord(changes=(DocumentRestorer().change(str(document.pk), document.name, before, after),))
