"""A history as a vendor is sent it, kept in pieces: it is translated once, and only what is new on each further call.

A run's messages only grow, so each call after the first sends bytes that are kept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from memory.messages import Image, Message

# How many messages make a piece that is kept or translated anew.
TOGETHER = 64


@dataclass(slots=True)
class Piece:
    """Messages that follow each other, as they are sent.

    ids: of the tool calls in them. images: the pictures, by the key that stands in their place in `sent`.
    opens, closes: the roles that they begin and end with, where neighbours of one role are sent as one message.
    """

    messages: list[Message]
    sent: bytes
    ids: set[str]
    opens: str = ""
    closes: str = ""
    images: dict[bytes, Image] = field(default_factory=dict)


@dataclass(slots=True)
class Translated:
    """What was sent of some messages, piece by piece, so that a history that goes on differently loses its end only.

    translate: messages as a piece.
    joint: what stands between two pieces that were sent, neither of which is empty.
    """

    translate: Callable[[Sequence[Message]], Piece]
    joint: Callable[[Piece, Piece], bytes]
    pieces: list[Piece] = field(default_factory=list)

    def follow(self, messages: Sequence[Message]) -> None:
        """Keep what says the same, translate the rest, many together: that is several times cheaper than one by one."""
        for start in range(self._keep(messages), len(messages), TOGETHER):
            self._add(self.translate(messages[start : start + TOGETHER]))

    @property
    def ids(self) -> set[str]:
        return set().union(*(piece.ids for piece in self.pieces))

    @property
    def images(self) -> dict[bytes, Image]:
        return {key: image for piece in self.pieces for key, image in piece.images.items()}

    @property
    def sent(self) -> list[Piece]:
        """The pieces of which anything is sent."""
        return [piece for piece in self.pieces if piece.sent]

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes of all pieces with what stands between them."""
        before: Piece | None = None
        for piece in self.sent:
            if before is not None:
                yield self.joint(before, piece)
            yield piece.sent
            before = piece

    def _keep(self, messages: Sequence[Message]) -> int:
        """Drop the pieces from the first that has changed; return how many messages stay. Comparing lists is cheap as
        long as they hold the very same messages, which is why those that were read anew take the place of the old."""
        kept = 0
        for at, piece in enumerate(self.pieces):
            now = list(messages[kept : kept + len(piece.messages)])
            if piece.messages != now:
                del self.pieces[at:]
                break
            piece.messages = now
            kept += len(now)
        return kept

    def _add(self, piece: Piece) -> None:
        """Let small pieces grow together: each step of a run brings one."""
        while self.pieces and len(self.pieces[-1].messages) <= min(len(piece.messages), TOGETHER // 2):
            piece = self._joined(self.pieces.pop(), piece)
        self.pieces.append(piece)

    def _joined(self, before: Piece, after: Piece) -> Piece:
        messages, ids = before.messages + after.messages, before.ids | after.ids
        if not before.sent or not after.sent:
            told = before if before.sent else after
            return Piece(messages, told.sent, ids, told.opens, told.closes, told.images)
        sent = b"".join((before.sent, self.joint(before, after), after.sent))
        return Piece(messages, sent, ids, before.opens, after.closes, before.images | after.images)
