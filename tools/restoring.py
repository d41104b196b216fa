"""How the things that tools change are read and put back: one restorer for each kind, listed in `AGENT_RESTORERS`."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import ClassVar, Final

from django.conf import settings
from django.db.models import OuterRef, Q
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.utils.module_loading import import_string

from tools.changes import Change, Image

FIRST_CHANGED: Final = KeyTextTransform("id", KeyTransform("0", KeyTransform("changes", OuterRef("undo"))))
"""In a query within one over actions: the id of the first thing that one has changed, as text."""


class CannotRestore(Exception):
    """It cannot be put back; the message is for people and models."""


class Restorer(ABC):
    """Of things of one kind. Stateless. Its methods find only what is the owner's, whatever the key says.

    transactional: the things are in our own database, so all of them are put back or none. Others are put back after
        them, one by one, and what fails of those is told (case UND-03).
    """

    kind: ClassVar[str]
    transactional: ClassVar[bool] = True

    @abstractmethod
    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        """How the thing stands now, every field that an undo may put back; None when it is not there.

        Args:
            lock: nobody may change it until the transaction ends.
        """

    def there(self, owner: int, keys: Collection[str]) -> set[str]:
        """Which of many things are there now."""
        return {key for key in keys if self.read(owner, key) is not None}

    @abstractmethod
    def write(self, owner: int, key: str, image: Image | None) -> None:
        """Let the thing stand as in `image`, or remove it when that is None.

        Raises:
            CannotRestore: what it hangs on is gone, or it cannot be put back.
        """

    def refusal(self, now: Image | None, target: Image | None) -> str:
        """Why such a thing cannot be put from one standing into another, as a sentence; empty when it can."""
        return ""

    def settled(self) -> Q:
        """Of the actions that changed such a thing, those of which it stays so for good, as far as a query can tell:
        no way back is offered from these."""
        return Q(pk__in=[])

    def change(self, key: str, name: str, before: Image | None, after: Image | None) -> Change:
        """The record of what a call did to a thing: of an update only the fields that differ."""
        if before is not None and after is not None:
            names = [field for field in before if before[field] != after.get(field)]
            before, after = ({field: image[field] for field in names} for image in (before, after))
        return Change(kind=self.kind, id=key, name=name, before=before, after=after)


@cache
def all_restorers() -> Mapping[str, Restorer]:
    """Every restorer by kind.

    Raises:
        ImportError: a path leads nowhere.
    """
    made: list[Restorer] = [import_string(path)() for path in settings.AGENT_RESTORERS]
    return MappingProxyType({restorer.kind: restorer for restorer in made})
