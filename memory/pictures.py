"""Which pictures of a history are sent, and how large: vendors refuse a request for pictures that were sent long ago,
and then every later one (case HIS-05).

Only the request differs; rows and stored pictures stay as they are. What was decided about a picture changes seldom,
because everything behind a change has to be read anew by the vendor: when there are too many, half are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from memory.media import left_out
from memory.messages import Image, Message, Text

UNSEEN: Final = "this model cannot see pictures"
OLDER: Final = "only the newest pictures are sent; the user can attach it again"


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What vendors take in one request.

    most: pictures. size: their characters in base64, so that the words have room beside them in 20 MB.
    many, longest: with more pictures than `many`, none may have a side of more than `longest` pixels.
    """

    most: int = 50
    size: int = 15_000_000
    many: int = 20
    longest: int = 2_000


LIMITS: Final = PictureLimits()


@dataclass(slots=True)
class Pictures:
    """The pictures of one run's history as they are sent.

    can_see: whether the model can; None when nobody knows, which is tried.
    """

    can_see: bool | None = None
    limits: PictureLimits = LIMITS
    _read: int = 0
    _found: list[tuple[int, Image]] = field(default_factory=list)

    def of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return what is to be sent for `messages`, which only grow from call to call; the very same when there are no
        pictures."""
        for at in range(self._read, len(messages)):
            self._found += [(at, block) for block in messages[at].blocks if isinstance(block, Image)]
        self._read = len(messages)
        if not self._found:
            return messages
        planned = iter(plan([image for _, image in self._found], self.limits, self.can_see))
        sent = list(messages)
        for at in dict.fromkeys(place for place, _ in self._found):
            sent[at] = _with(sent[at], planned)
        return sent


def plan(images: Sequence[Image], limits: PictureLimits, can_see: bool | None) -> list[Image | Text]:
    """Return what stands in the place of each picture, oldest first."""
    if can_see is False:
        return [left_out(image, UNSEEN) for image in images]
    first = _first_sent([_characters(image) for image in images], limits)
    many = len(images) - first > limits.many
    old = (left_out(image, OLDER) for image in images[:first])
    return [*old, *(_smaller(image, limits.longest) if many else image for image in images[first:])]


def _first_sent(sizes: Sequence[int], limits: PictureLimits) -> int:
    """The place of the oldest picture that is sent. It moves on only when there are too many, and then until half of
    what may be is free."""
    first = total = 0
    for at, size in enumerate(sizes):
        total += size
        if at + 1 - first <= limits.most and total <= limits.size:
            continue
        while first < at and (at + 1 - first > limits.most // 2 or total > limits.size // 2):
            total -= sizes[first]
            first += 1
    return first


def _characters(image: Image) -> int:
    return -(-image.size // 3) * 4


def _smaller(image: Image, longest: int) -> Image:
    too_large = max(image.width, image.height) > longest
    return image.model_copy(update={"longest": longest}) if too_large else image


def _with(message: Message, planned: Iterator[Image | Text]) -> Message:
    blocks: Iterable[object] = (next(planned) if isinstance(block, Image) else block for block in message.blocks)
    changed = message.model_copy(update={"blocks": tuple(blocks)})
    return message if changed == message else changed
