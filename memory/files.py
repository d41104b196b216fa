"""Files of people: what they are called, what they are, and what of them can be read."""

import unicodedata
from pathlib import PurePosixPath
from typing import Final

from memory.text import clean

NAME_LENGTH: Final = 120
TEXT: Final = "text/plain"
UNKNOWN: Final = "application/octet-stream"
_BEGINNINGS: Final = (
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_BLANKS: Final = "\t\n\r\f"


def seen(text: str) -> str:
    """Return the text without what cannot be seen, rings or turns the reading order."""
    return "".join(char for char in text if unicodedata.category(char)[0] != "C")


def safe_name(name: str) -> str:
    """Return the last part of a path without what cannot be seen or turns the reading order; never empty."""
    last = clean(name).replace("\\", "/").rpartition("/")[2]
    words = map(seen, last.split())
    bare = " ".join(filter(None, words)).lstrip(".").strip() or "file"
    if len(bare) <= NAME_LENGTH:
        return bare
    suffix = PurePosixPath(bare).suffix[:20]
    return bare[: NAME_LENGTH - len(suffix)] + suffix


def with_suffix(name: str, suffix: str, *also: str) -> str:
    """Return the name with the suffix that fits its content, unless it has that or one of the others already."""
    path = PurePosixPath(name)
    return name if path.suffix.lower() in (suffix, *also) else f"{path.stem}{suffix}"


def text_of(data: bytes) -> str | None:
    """Return the text that the bytes are; None when they are none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if any(unicodedata.category(char) == "Cc" and char not in _BLANKS for char in set(text)):
        return None
    return clean(text)


def media_type_of(data: bytes) -> str:
    """What bytes that are neither picture nor text are, by how they begin; names are not believed."""
    return next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), UNKNOWN)
