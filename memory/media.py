"""Media inside text: data addresses, as pages and tools give them."""

import re
from typing import Final

from memory.messages import Message, rewritten

LEFT_OUT: Final = "[media left out]"
# A single piece that is larger is never sent: no vendor takes it, and it would be paid for with every call. Characters.
LARGEST: Final = 2_000_000
_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w=.+-]{1,80}){0,4};base64,[A-Za-z0-9+/=_-]*")


def without_media(text: str, longest: int = 0) -> str:
    """Return `text` with each data address of more than `longest` characters shown as left out."""
    if len(text) <= longest or ";base64," not in text:
        return text
    return _DATA.sub(lambda found: LEFT_OUT if len(found[0]) > longest else found[0], text)


def within_size(message: Message) -> Message:
    """Return the message without what is too large to be sent at all; mostly the very same message."""
    return rewritten(message, _within_size, _within_size)


def _within_size(text: str) -> str:
    return without_media(text, LARGEST)
