"""Pictures in the body of a call.

What is kept of a history has a key in the place of each picture, whose bytes are put in as the call is sent: kept in
the translation of every conversation they would fill the memory.
"""

import base64
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Final

from pydantic import JsonValue

from agents.providers.base import GONE, Load
from agents.providers.translated import Translated
from memory.encoding import dumps
from memory.media import left_out
from memory.messages import Image

# Nobody else can write a key, in whatever text.
_SECRET: Final = secrets.token_hex(16)
_KEY: Final = re.compile(rb'"(%b/[^"]*)"' % _SECRET.encode())


def key_of(image: Image) -> bytes:
    """Return what stands for the picture in a list of parts."""
    return f"{_SECRET}/{image.id}/{image.longest or ''}".encode()


type Part = Callable[[Image, str], JsonValue]
"""How a vendor is sent a picture, whose bytes are given in base64."""


def words(image: Image) -> JsonValue:
    """What stands for a picture that is gone, in a list of parts."""
    return {"type": "text", "text": left_out(image, GONE).text}


def with_images(
    kept: Translated, load: Load | None, part: Part, gone: Callable[[Image], JsonValue] = words
) -> Iterator[bytes]:
    """Yield what is sent, with each key replaced by its picture, or by what `gone` says when there is none any more."""
    images = kept.images
    if not images:
        yield from kept.parts()
        return
    for each in kept.parts():
        at = 0
        for found in _KEY.finditer(each):
            yield each[at : found.start()]
            image = images[found[1]]
            content = load(image) if load else None
            yield dumps(gone(image) if content is None else part(image, base64.b64encode(content).decode()))
            at = found.end()
        yield each[at:]
