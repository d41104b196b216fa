"""Text that arrives in pieces."""

from memory.text import clean


class Pieces:
    """Joins pieces of text and says what may be shown of them.

    Half a surrogate pair waits for its other half (case STO-02), and blank text waits for something to stand before,
    so that a reply of blanks only is no text at all (case HIS-04).
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._blank: list[str] = []
        self._held: list[str] = []

    @property
    def text(self) -> str:
        """Everything shown so far, cleaned."""
        return "".join(self._shown)

    def feed(self, piece: str) -> None:
        self._held.append(piece)

    def take(self) -> str:
        """Return what came since the last time and may be shown now, which may be nothing."""
        text = "".join(self._held)
        whole = text[:-1] if text and "\ud800" <= text[-1] <= "\udbff" else text
        self._held = [text[len(whole) :]]
        if not self._shown and not whole.strip():
            self._blank.append(whole)
            return ""
        return self._show(self._led_in(whole))

    def end(self) -> str:
        """Nothing more comes: return what was held back and still counts."""
        text, self._held = "".join(self._held), []
        return self._show(self._led_in(text)) if text.strip() else ""

    def _led_in(self, text: str) -> str:
        """Put what waited for it before the first text."""
        before, self._blank = self._blank, []
        return "".join((*before, text))

    def _show(self, text: str) -> str:
        if text:
            text = clean(text)
            self._shown.append(text)
        return text
