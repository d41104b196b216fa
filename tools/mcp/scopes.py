"""Rights that one asks for at a sign-in, by names with blanks between them (RFC 6749, 3.3)."""

from typing import Final

LONGEST: Final = 4_000
"""Of all names together, in characters."""


def fitting(scope: str) -> str:
    """Return as many whole names as are kept: a part of one is another one."""
    kept: list[str] = []
    room = LONGEST
    for name in scope.split():
        room -= len(name) + 1
        if room < 0:
            break
        kept.append(name)
    return " ".join(kept)
