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


type Part = Callable[[str, str], JsonValue]
"""How a vendor is sent a picture: its media type and its bytes in base64."""


def with_images(kept: Translated, load: Load | None, part: Part) -> Iterator[bytes]:
    """Yield what is sent, with each key replaced by its picture, or by words when there is none any more."""
    images = kept.images
    if not images:
        yield from kept.parts()
        return
    for each in kept.parts():
        at = 0
        for found in _KEY.finditer(each):
            yield each[at : found.start()]
            yield dumps(_filled(images[found[1]], load, part))
            at = found.end()
        yield each[at:]


def _filled(image: Image, load: Load | None, part: Part) -> JsonValue:
    content = load(image) if load else None
    if content is None:
        return {"type": "text", "text": left_out(image, GONE).text}
    return part(image.media_type, base64.b64encode(content).decode())
