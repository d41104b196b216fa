"""Pictures in the body of a Chat Completions call.

What is kept of a history has a key in the place of each picture, whose bytes are put in as the call is sent: kept in
the translation of every conversation they would fill the memory.
"""

import base64
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from agents.providers.base import GONE, Load
from memory.encoding import dumps
from memory.media import left_out
from memory.messages import Image

# Nobody else can write a key, in whatever text.
_SECRET: Final = secrets.token_hex(16)
_KEY: Final = re.compile(rb'"(%b/[^"]*)"' % _SECRET.encode())


def key_of(image: Image) -> bytes:
    """Return what stands for the picture in a list of parts."""
    return f"{_SECRET}/{image.id}/{image.longest or ''}".encode()


def with_images(sent: Iterable[bytes], images: Mapping[bytes, Image], load: Load | None) -> Iterator[bytes]:
    """Yield what is sent, with each key replaced by its picture, or by words when there is none any more."""
    for each in sent:
        at = 0
        for found in _KEY.finditer(each):
            yield each[at : found.start()]
            yield _part(images[found[1]], load)
            at = found.end()
        yield each[at:]


def _part(image: Image, load: Load | None) -> bytes:
    content = load(image) if load else None
    if content is None:
        words: JsonValue = {"type": "text", "text": left_out(image, GONE).text}
        return dumps(words)
    address = b"data:%b;base64,%b" % (image.media_type.encode(), base64.b64encode(content))
    return b'{"type":"image_url","image_url":{"url":"%b"}}' % address
