"""What a check gives back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is out of order.

    what: for people; it names no private content.
    repair: puts it right in a transaction of its own; False when there was nothing to put right any more.
    """

    what: str
    repair: Callable[[], bool]


class Check(NamedTuple):
    """`find` looks for at most so many findings, the oldest first."""

    name: str
    title: str
    find: Callable[[int], Sequence[Finding]]
