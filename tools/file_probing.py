"""Whether a call that writes or removes a file has happened, when nobody knows (docs/reliability.md, "Files")."""

from uuid import UUID

from django.db import transaction

from tools.changes import UndoRecord
from tools.file_changes import image
from tools.file_models import FileWrite
from tools.files import FileRefused, locked, named
from tools.sandbox.folder import Folder


def landed(thread_id: UUID, call: UUID) -> UndoRecord | None:
    """What a call wrote, when nobody knows whether it did; None: it certainly did not, and never will.

    Its record comes before its effect, and the effect takes the staged file away. A call that is still at it holds the
    lock meanwhile.

    Raises:
        FileRefused: it cannot be told now.
    """
    with transaction.atomic():
        locked(thread_id)
        intended = FileWrite.objects.filter(pk=call, workspace=thread_id).first()
        if intended is None or (Folder(thread_id).staged / str(call)).exists():
            return None
        return UndoRecord.model_validate(intended.record)


def vanished(thread_id: UUID, path: str, call: UUID) -> UndoRecord | None:
    """What a call removed, when nobody knows whether it did; None: it did not.

    Raises:
        FileRefused: it cannot be told, because there is another file now, or somebody is at work there.
    """
    with transaction.atomic():
        locked(thread_id)
        intended = FileWrite.objects.filter(pk=call, workspace=thread_id).first()
        if intended is None:
            return None
        record = UndoRecord.model_validate(intended.record)
        now = image(thread_id, Folder(thread_id).content(named(path)))
    if now is None:
        return record
    if any(each.before != now for each in record.changes):
        raise FileRefused("There is another file of that name now.")
    return None
