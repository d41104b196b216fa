"""How the files of agents are read and put back by an undo (mission D8)."""

from collections.abc import Collection
from uuid import UUID, uuid4

from memory.models import Thread
from tools import files
from tools.changes import Image
from tools.file_changes import KIND, image as image_of
from tools.file_models import WorkspaceFile, Writer
from tools.restoring import CannotRestore, Restorer
from tools.sandbox.beneath import OutOfReach
from tools.sandbox.folder import Folder
from tools.sandbox.staging import Content

NOT_KEPT = "What was in it is not kept any more."


class FileRestorer(Restorer):
    """The key is the thread's id and the path. A file lies outside of the transaction: it is put back at its end, and
    stays so if that fails; the next try finds it as it was before."""

    kind = KIND
    transactional = False

    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        thread_id, path = _found(owner, key)
        if thread_id is None:
            return None
        try:
            if lock:
                files.locked(thread_id)
            return image_of(thread_id, Folder(thread_id).content(path.split("/")))
        except files.FileRefused as busy:
            raise CannotRestore(str(busy)) from busy
        except (OutOfReach, OSError) as error:
            return {"thread": str(thread_id), "sha256": "", "size": 0, "mode": "", "problem": str(error)}

    def there(self, owner: int, keys: Collection[str]) -> set[str]:
        """By the record: files are not opened for a list."""
        threads = Thread.objects.filter(user=owner, pk__in={key.partition("/")[0] for key in keys}).values("pk")
        mine = WorkspaceFile.objects.filter(workspace__in=threads)
        known = {f"{thread}/{path}" for thread, path in mine.values_list("workspace", "path")}
        return known.intersection(keys)

    def write(self, owner: int, key: str, image: Image | None) -> None:
        thread_id, path = _found(owner, key)
        if thread_id is None:
            raise CannotRestore("the conversation that it belonged to is gone.")
        folder = Folder(thread_id)
        try:
            workspace = files.locked(thread_id)
            folder.content(path.split("/"), keep=True)
            if image is None:
                files.take_away(workspace, folder, path)
                return
            content = Content(str(image["sha256"]), int(str(image["size"])), int(str(image["mode"]), 8))
            hand = files.Hand(Writer.RESTORED, tuple(workspace.sources))
            files.put(workspace, folder, folder.kept.stage(content), path, content, hand)
            folder.kept.let_go()
        except (files.FileRefused, OutOfReach, OSError) as error:
            raise CannotRestore(files.reason(error)) from error

    def refusal(self, now: Image | None, target: Image | None) -> str:
        if target is None or "sha256" not in target:
            return ""
        thread = str((target if "thread" in target else now or {}).get("thread", uuid4()))
        return "" if Folder(UUID(thread)).kept.holds(str(target["sha256"])) else NOT_KEPT


def _found(owner: int, key: str) -> tuple[UUID | None, str]:
    """The thread, if it is the owner's, and the path."""
    thread, _, path = key.partition("/")
    mine = Thread.objects.filter(pk=thread, user_id=owner).values_list("pk", flat=True).first()
    return mine, path
