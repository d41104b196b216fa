"""What the tools of a reflective companion have in common (mission D11)."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated

from pydantic import Field

from tools.base import Arguments, Audience, Effect, Pack, Reversal, Tool, ToolError
from tools.changes import UndoRecord
from tools.part_models import Record
from tools.part_restoring import changed
from tools.parts import RecordRefused
from tools.quotes import MOST_QUOTES, NotSaid

Evidence = Annotated[
    list[str],
    Field(
        max_length=MOST_QUOTES,
        description="What the user wrote in this conversation, word by word: passages of their own messages, in their "
        "spelling.",
    ),
]


class Reflecting[A: Arguments](Tool[A]):
    """It only reads, unless it says otherwise, and is for agents that talk with the person."""

    pack = Pack.REFLECTIVE
    audience = frozenset({Audience.CONVERSATION})


class Keeping[A: Arguments](Reflecting[A]):
    """It writes. It is not contained: what a stranger may have asked for says nothing lasting about a person."""

    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    parallel_safe = False


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raises: ToolError for what cannot be kept, or is no evidence."""
    try:
        yield
    except (RecordRefused, NotSaid) as refused:
        raise ToolError(str(refused)) from refused


def expected[R: Record](record: R | None, change: Callable[[R], object]) -> UndoRecord | None:
    """What a call would do to a record; None when that is nothing, or would be refused."""
    try:
        return changed(record, change) if record else None
    except (RecordRefused, NotSaid):
        return None
