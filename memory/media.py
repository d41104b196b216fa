"""Pictures that are left out of what is sent, and media inside text: data addresses, as pages and tools give them."""

import re
from typing import Final

from memory.messages import Image, Message, Text, rewritten

LEFT_OUT: Final = "[media left out]"
REFUSED: Final = "the model's server did not take it"
# A single piece that is larger is never sent: no vendor takes it, and it would be paid for with every call. Characters.
LARGEST: Final = 2_000_000
_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w=.+-]{1,80}){0,4};base64,[A-Za-z0-9+/=_-]*")


def without_media(text: str, longest: int = 0) -> str:
    """Return `text` with each data address of more than `longest` characters shown as left out."""
    if len(text) <= longest or ";base64," not in text:
        return text
    return _DATA.sub(lambda found: LEFT_OUT if len(found[0]) > longest else found[0], text)


def left_out(image: Image, why: str) -> Text:
    """Return what the model reads in a picture's place."""
    return Text(text=f"[The picture {image.name} was left out here: {why}.]")


def without_pictures(message: Message) -> Message:
    """Return the message with words in the place of its pictures; the very same message when it has none."""
    if not any(isinstance(block, Image) for block in message.blocks):
        return message
    blocks = (left_out(block, REFUSED) if isinstance(block, Image) else block for block in message.blocks)
    return Message(role=message.role, blocks=tuple(blocks))


def within_size(message: Message) -> Message:
    """Return the message without what is too large to be sent at all; mostly the very same message."""
    return rewritten(message, _within_size, _within_size)


def _within_size(text: str) -> str:
    return without_media(text, LARGEST)
