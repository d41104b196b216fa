"""Rows of a conversation that tools write: how an undo reads them and puts them back (mission D8)."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from django.db import IntegrityError, transaction
from django.db.models import Model
from django.db.models.functions import Now

from memory.models import Thread
from memory.room import make_sure_of_room, size
from tools.base import Arguments, Audience, Effect, Reversal, Tool, ToolContext
from tools.changes import Image
from tools.restoring import CannotRestore, Restorer


class Writes[A: Arguments](Tool[A]):
    """A tool of an agent that talks with a person: it writes rows of the conversation, one call after another, and each
    can be undone."""

    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    audience = frozenset({Audience.CONVERSATION})
    parallel_safe = False


class RowRestorer(Restorer):
    """Of rows of one model, which have a user and a thread, or none where they are the user's alone.

    stamps: fields that say when a row was last written. fills: its text counts for its user's quota (`memory.room`).
    """

    model: ClassVar[type[Model]]
    stamps: ClassVar[tuple[str, ...]] = ()
    fills: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def image(row: Any, /) -> Image:
        """Its fields as JSON, `thread_id` or `thread` among them; `sources` may be left out when there are none."""

    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        rows = self.model._default_manager.filter(pk=key, user=owner)
        row = (rows.select_for_update() if lock else rows).first()
        return self.image(row) if row else None

    def there(self, owner: int, keys: Collection[str]) -> set[str]:
        rows = self.model._default_manager.filter(pk__in=keys, user=owner)
        return {str(pk) for pk in rows.values_list("pk", flat=True)}

    def write(self, owner: int, key: str, image: Image | None) -> None:
        rows = self.model._default_manager
        if image is None:
            rows.filter(pk=key, user=owner).delete()
            return
        fields: dict[str, Any] = ({"sources": []} if hasattr(self.model, "sources") else {}) | image
        fields["thread_id"] = thread = fields.pop("thread", None) or fields["thread_id"]
        if thread and not Thread.objects.filter(pk=thread, user=owner).exists():
            raise CannotRestore("the conversation that it belonged to is gone.")
        if self.fills and not rows.filter(pk=key, user=owner).exists():
            texts = [value for value in image.values() if isinstance(value, str)]
            make_sure_of_room(owner, size(*texts), CannotRestore, wait=False)
        try:
            with transaction.atomic():
                rows.update_or_create(pk=key, user_id=owner, defaults=fields | dict.fromkeys(self.stamps, Now()))
        except IntegrityError as taken:
            raise CannotRestore("another one has taken its place.") from taken


def thread_of(context: ToolContext) -> Thread:
    """Only its identity and its owner, which the engine knows: not worth a query."""
    return Thread(pk=context.thread_id, user_id=context.user_id)
