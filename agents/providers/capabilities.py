"""What a model can do, as data. Who says so, in this order: its user, its server, the table in `known_models`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Self

from pydantic import JsonValue

LONGEST_WINDOW = 100_000_000


@dataclass(frozen=True, slots=True)
class Capabilities:
    """None is unknown, which is neither yes nor no: what is unknown is tried.

    tools: whether it calls tools. parallel_calls: several in one reply. images: whether it sees them.
    thinking: whether it shows its reasoning. context_length, output_limit: tokens.
    """

    tools: bool | None = None
    parallel_calls: bool | None = None
    images: bool | None = None
    thinking: bool | None = None
    context_length: int | None = None
    output_limit: int | None = None

    def over(self, other: Self) -> Self:
        """These facts, and where they say nothing those of `other`."""
        mine = {name: value for name, value in asdict(self).items() if value is not None}
        return type(self)(**(asdict(other) | mine))

    def stored(self) -> dict[str, JsonValue]:
        """What stands in a column: only what is known."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def read(cls, stored: Mapping[str, JsonValue]) -> Self:
        """The facts of a column; what is not of the right type is unknown."""
        return cls(**{each.name: _fact(each.name, stored.get(each.name)) for each in fields(cls)})  # type: ignore[arg-type]


NUMBERS = frozenset(("context_length", "output_limit"))


def positive(value: object) -> int | None:
    """A number of tokens as servers write it: a whole number, or one as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value <= LONGEST_WINDOW else None


def _fact(name: str, value: JsonValue | None) -> bool | int | None:
    if name in NUMBERS:
        return positive(value)
    return value if isinstance(value, bool) else None
