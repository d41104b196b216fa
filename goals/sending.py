"""What comes of sending something."""

from dataclasses import dataclass

from goals.notice import ReceiptState


@dataclass(frozen=True, slots=True)
class Outcome:
    """detail: what went wrong, in words for people."""

    state: ReceiptState
    detail: str = ""
