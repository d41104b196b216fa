"""Attachments into rows, and their pictures out again for a model."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from memory import images, pool
from memory.attachment import Attachment
from memory.files import TEXT, media_type_of, text_of, with_suffix
from memory.ids import new_id
from memory.locks import QUOTA_LOCK
from memory.messages import File, Image
from memory.metadata import Attached
from memory.models import Thread
from memory.text import shortened

# Of pictures that a worker has sent last; a step of an agent sends the same ones as the step before. Bytes.
KEPT: Final = 64_000_000
CONTENT: Final = """
SELECT a.content FROM memory_attachment a JOIN memory_thread t ON t.id = a.thread_id
WHERE a.id = %(id)s AND t.user_id = %(user)s
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An attachment that is read and checked, but not stored yet. thumbnail: of a picture only."""

    block: Image | File
    content: bytes
    thumbnail: bytes | None = None

    @property
    def told(self) -> Attached:
        """What the message says of it."""
        block = self.block
        sides = (block.width, block.height) if isinstance(block, Image) else (None, None)
        return Attached(
            id=block.id, name=block.name, media_type=block.media_type, size=block.size, width=sides[0], height=sides[1]
        )


def prepare(name: str, data: bytes, *, longest: int, pixels: int) -> Prepared:
    """Read what somebody attached: a picture that we can decode, text, or some other file.

    Args:
        name: as `files.safe_name` gives it.
        longest, pixels: of a picture, see `images.read`.

    Raises:
        images.TooManyPixels: it is a picture that is too large to decode.
        images.Busy: pictures of others took too long.
    """
    picture = images.read(data, longest=longest, most=pixels)
    if picture is None:
        text = text_of(data)
        kind = media_type_of(data) if text is None else TEXT
        return Prepared(File(id=new_id(), name=name, media_type=kind, size=len(data), text=text), data)
    suffixes = (".png",) if picture.media_type == "image/png" else (".jpg", ".jpeg")
    image = Image(
        id=new_id(),
        name=with_suffix(name, *suffixes),
        media_type=picture.media_type,
        width=picture.width,
        height=picture.height,
        size=len(picture.content),
    )
    return Prepared(image, picture.content, picture.thumbnail)


def within_text(prepared: Sequence[Prepared], longest: int) -> list[Prepared]:
    """Let the texts of all files together have `longest` characters, each the same share."""
    texts = sum(isinstance(each.block, File) and each.block.text is not None for each in prepared)
    return [_shorter(each, longest // max(texts, 1)) for each in prepared]


def _shorter(prepared: Prepared, longest: int) -> Prepared:
    block = prepared.block
    if not isinstance(block, File) or block.text is None:
        return prepared
    return Prepared(block.model_copy(update={"text": shortened(block.text, longest)}), prepared.content)


def lock_quota(user_id: int) -> int:
    """Return the bytes that the user's attachments take, which nobody adds to until the open transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [QUOTA_LOCK, user_id])
    used = Attachment.objects.filter(thread__user=user_id).aggregate(bytes=Sum("size"))["bytes"]
    return used or 0


def store(thread: Thread, message_id: UUID, prepared: Iterable[Prepared]) -> None:
    """Write them in the open transaction, in which the message follows."""
    Attachment.objects.bulk_create(
        Attachment(
            id=each.block.id,
            thread=thread,
            message_id=message_id,
            place=place,
            name=each.block.name,
            media_type=each.block.media_type,
            size=each.block.size,
            sha256=hashlib.sha256(each.content).hexdigest(),
            block=each.block.model_dump(mode="json", exclude_none=True),
            content=each.content,
            thumbnail=each.thumbnail,
        )
        for place, each in enumerate(prepared)
    )


class Kept:
    """Bytes that were used last, as many as `limit`. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._items: OrderedDict[object, bytes] = OrderedDict()
        self._size = 0

    def get(self, key: object, make: Callable[[], bytes | None]) -> bytes | None:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        made = make()
        if made is not None:
            self._put(key, made)
        return made

    def _put(self, key: object, item: bytes) -> None:
        with self._lock:
            self._size += len(item) - len(self._items.pop(key, b""))
            self._items[key] = item
            while self._size > self._limit:
                self._size -= len(self._items.popitem(last=False)[1])


_kept = Kept(KEPT)


def loader(user_id: int) -> Callable[[Image], bytes | None]:
    """Return what gives the bytes of a user's pictures as they are to be sent; None for one that is gone."""
    return lambda image: _kept.get((user_id, image.id, image.longest), lambda: _load(user_id, image))


def _load(user_id: int, image: Image) -> bytes | None:
    rows = pool.execute(CONTENT, {"id": image.id, "user": user_id})
    if not rows:
        return None
    content = bytes(rows[0][0])
    return images.smaller(content, image.media_type, image.longest) if image.longest else content
