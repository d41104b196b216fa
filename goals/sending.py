"""What comes of sending something."""

from dataclasses import dataclass

from goals.notice import ReceiptState


@dataclass(frozen=True, slots=True)
class Outcome:
    """detail: what went wrong, in words for people. is_down: whoever was to carry it does not answer, so the next will
    fare no better now. pause: seconds before which it does not want to be asked again."""

    state: ReceiptState
    detail: str = ""
    is_down: bool = False
    pause: float = 0
