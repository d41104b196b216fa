"""What the tools of a reflective companion have in common (mission D11)."""

import contextlib
from collections.abc import Iterator

from tools.base import Arguments, Audience, Effect, Pack, Reversal, Tool, ToolError
from tools.parts import RecordRefused
from tools.quotes import NotSaid


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
